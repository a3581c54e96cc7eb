package atomicfile

import (
	"errors"
	"io"
	"os"
)

// Linker is an [FS] that can give a file a second name.
type Linker interface {
	Link(oldname, newname string) error
}

// Link gives a file a second name, which must not exist. If the file system has no links it makes a
// copy, which is whole or absent. The name is durable after the directory is synced, which is left
// to the caller.
func Link(fsys FS, oldname, newname string) error {
	if l, ok := OrOS(fsys).(Linker); ok && l.Link(oldname, newname) == nil {
		return nil
	}
	return copyFile(fsys, oldname, newname)
}

func copyFile(fsys FS, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := Create(fsys, to, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Rename()
}

func (osFS) Link(oldname, newname string) error { return os.Link(oldname, newname) }
