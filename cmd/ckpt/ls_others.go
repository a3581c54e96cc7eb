package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// othersShown is how many models of other formats are named where there are no checkpoints.
const othersShown = 3

// printNone says that a directory has no checkpoints, and which models of other formats it
// has instead: `ckpt ls` lists the tensors of those by name only.
func printNone(w io.Writer, dir string) {
	others := othersBelow(dir, othersShown+1)
	if len(others) == 0 {
		fmt.Fprintf(w, "ckpt: there are no checkpoints in %s\n", dir)
		return
	}
	more := ""
	if len(others) > othersShown {
		others, more = others[:othersShown], ", ..."
	}
	fmt.Fprintf(w, "ckpt: there are no checkpoints of TensorFlow in %s, but models of other formats: %s%s; `ckpt ls %s` lists the tensors of one\n",
		dir, strings.Join(others, ", "), more, others[0])
}

// othersBelow returns at most so many files and folders below a directory that are models
// of formats other than TensorFlow's.
func othersBelow(dir string, most int) (names []string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case len(names) == most:
			return fs.SkipAll
		case path == dir:
			return nil // a folder that is one itself is not listed as a directory
		case err != nil || strings.HasPrefix(d.Name(), ".") || d.Name() == manifest.RecordsDir:
			return skip(d)
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			return nil // to open a pipe blocks
		}
		f, err := formats.Find(path)
		if err != nil || f.Kind.IsCheckpoint() {
			return nil
		}
		names = append(names, printable(path))
		return skip(d)
	})
	return names
}

// skip leaves out what a walk has come to.
func skip(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}
