package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// writeOut writes the file that a flag names. It appears as a whole or not at all;
// devices and pipes, which must not be replaced by a file, are written at once. Of a
// link the file is replaced that it leads to.
func writeOut(name string, write func(io.Writer) error) (err error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return writeDevice(name, write)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	f, err := atomicfile.Create(nil, name, "")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

func writeDevice(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close() // the first error is the one to report
		return err
	}
	return f.Close()
}
