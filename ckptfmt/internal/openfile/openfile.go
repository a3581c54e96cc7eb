// Package openfile opens a file for a reader that needs random access. It has no
// state.
package openfile

import (
	"errors"
	"io"
	"os"
)

// Open opens the file of that name and makes a reader of it, which owns the
// file from then on. The file is closed if that fails.
func Open[R any](name string, newReader func(from io.ReaderAt, size int64, name string) (R, error)) (R, *os.File, error) {
	var none R
	f, err := os.Open(name)
	if err != nil {
		return none, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return none, nil, errors.Join(err, f.Close())
	}
	r, err := newReader(f, info.Size(), name)
	if err != nil {
		return none, nil, errors.Join(err, f.Close())
	}
	return r, f, nil
}
