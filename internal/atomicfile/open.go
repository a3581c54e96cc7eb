package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular is why a pipe, a socket or a device is not read in the place of a file: to open
// it may wait for a writer who never comes, and to read it may never end.
var ErrNotRegular = errors.New("it is a pipe, a socket or a device, not a file")

// Opener is an [FS] whose files are also read through it.
type Opener interface {
	Open(name string) (ReadFile, error)
}

// ReadFile is a file that is open for reading.
type ReadFile interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Open opens a file for reading, through fsys if that is an [Opener]. If the operating system's
// file is not a regular one, the error matches [ErrNotRegular].
func Open(fsys FS, name string) (ReadFile, error) {
	if o, ok := fsys.(Opener); ok {
		return o.Open(name)
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err // not f: a nil *os.File in a ReadFile is not nil
	}
	return f, nil
}

// ReadFileLimit returns the content of a file that [Open] opens, unless it is
// larger than limit: then the error is tooLarge of its size, or if tooLarge is nil one that says so.
func ReadFileLimit(fsys FS, name string, limit int64, tooLarge func(size int64) error) ([]byte, error) {
	f, err := Open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > limit && tooLarge == nil:
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it has %d bytes; want at most %d", info.Size(), limit)}
	case info.Size() > limit:
		return nil, tooLarge(info.Size())
	}
	b := make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it was cut since
	}
	return b[:n], err
}
