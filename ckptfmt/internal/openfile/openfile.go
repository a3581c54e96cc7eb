// Package openfile opens a file for a reader that needs random access.
//
// Only while the reader is made, the file is mapped into memory, if the system can do that: the
// directory of a hundred thousand tensors is scattered over the file, or makes up a tenth of it,
// and copying it from the kernel takes longer than decoding it. If another program truncates the
// file meanwhile, that is an ordinary error.
package openfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// Open opens the file of that name and makes a reader of it, which owns the
// file from then on. The file is closed if that fails.
func Open[R any](name string, newReader func(from io.ReaderAt, size int64, name string) (R, error)) (R, *File, error) {
	var none R
	f, err := Shared(nil, name)
	if err != nil {
		return none, nil, err
	}
	r, err := whileMapped(f, func(from io.ReaderAt) (R, error) { return newReader(from, f.Size(), name) })
	if err != nil {
		return none, nil, errors.Join(err, f.Close())
	}
	return r, f, nil
}

// mapped is a file that is in memory for some time. ReadAt reads it as any other.
type mapped struct {
	*File
	view []byte // nil at other times
}

// leastMapped is the size of a file from which it is worth it.
const leastMapped = 1 << 20

func whileMapped[R any](f *File, newReader func(from io.ReaderAt) (R, error)) (r R, err error) {
	if f.Size() < leastMapped {
		return newReader(f)
	}
	var view []byte
	err = f.Use(func(file atomicfile.ReadFile) error {
		view, err = mapFile(file.(*os.File), f.Size())
		return err
	})
	if err != nil {
		return newReader(f) // which is slower
	}
	m := &mapped{f, view}
	defer func() { m.view, err = nil, errors.Join(err, unmapFile(view)) }()
	err = Guard(m, func() error {
		r, err = newReader(m)
		return err
	})
	return r, err
}

// View returns n bytes of a file at an offset while it is mapped; nil at other times, of
// other files, and of what is outside of it. They are not to be changed, and no longer valid
// when the reader is made.
func View(from io.ReaderAt, at int64, n int) []byte {
	m, ok := from.(*mapped)
	if !ok || at < 0 || n < 0 || at > int64(len(m.view)-n) {
		return nil
	}
	return m.view[at:][:n:n]
}

// Bytes returns n bytes of a file as View does, or reads them.
func Bytes(from io.ReaderAt, at int64, n int) ([]byte, error) {
	if b := View(from, at, n); b != nil {
		return b, nil
	}
	b := make([]byte, n)
	if got, err := from.ReadAt(b, at); got < n {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// Guard calls do, which looks at what View returns. What has become shorter since it was
// mapped is an error. Each goroutine needs a guard of its own; Open is that of its own.
func Guard(from io.ReaderAt, do func() error) (err error) {
	m, ok := from.(*mapped)
	if !ok {
		return do()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		if at, ok := fault.(interface{ Addr() uintptr }); !ok || !within(m.view, at.Addr()) {
			panic(fault)
		}
		err = fmt.Errorf("%s became shorter while it was read: %w", m.Name(), io.ErrUnexpectedEOF)
	}()
	return do()
}
