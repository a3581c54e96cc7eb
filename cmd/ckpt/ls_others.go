package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/formats"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/walkdir"
)

// othersShown is how many models of other formats are named where there are no checkpoints.
const othersShown = 3

// printNone says that a directory has no checkpoints, and which models of other formats it
// has instead: `ckpt ls` lists the tensors of those by name only, or says what they are.
func printNone(w io.Writer, dir string) {
	readable, others := othersBelow(dir, othersShown+1)
	switch {
	case len(readable) > 0:
		fmt.Fprintf(w, "ckpt: there are no checkpoints of TensorFlow in %s, but models of other formats: %s; `ckpt ls %s` lists the tensors of one\n",
			dir, firstFew(readable), readable[0])
	case len(others) > 0:
		name, _, _ := strings.Cut(others[0], " (")
		fmt.Fprintf(w, "ckpt: there are no checkpoints in %s that ckpt can read, but others: %s; `ckpt ls %s` says what to do with one\n",
			dir, firstFew(others), name)
	default:
		fmt.Fprintf(w, "ckpt: there are no checkpoints in %s\n", dir)
	}
}

// firstFew names the first few, and marks that there are more.
func firstFew(names []string) string {
	if len(names) > othersShown {
		names = append(names[:othersShown:othersShown], "...")
	}
	return strings.Join(names, ", ")
}

// othersBelow returns at most so many files and folders below a directory that are models
// of formats other than TensorFlow's: those that can be read, and, each with what it is,
// those that only other programs read.
func othersBelow(dir string, most int) (readable, others []string) {
	walkdir.Walk(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case len(readable) == most:
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
		wrong := new(formats.KindError)
		switch {
		case errors.As(err, &wrong) && wrong.Model:
			if is, _, _ := strings.Cut(wrong.Is, ","); len(others) < most {
				others = append(others, fmt.Sprintf("%s (%s)", printable(path), is))
			}
		case err != nil || f.Kind.IsCheckpoint():
			return nil
		default:
			readable = append(readable, printable(path))
		}
		return skip(d)
	})
	return readable, others
}

// skip leaves out what a walk has come to.
func skip(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}
