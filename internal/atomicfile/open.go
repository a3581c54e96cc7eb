package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

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

// Open opens a file for reading, through fsys where that is an [Opener].
func Open(fsys FS, name string) (ReadFile, error) {
	if o, ok := fsys.(Opener); ok {
		return o.Open(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err // not f: a nil *os.File in a ReadFile is not nil
	}
	return f, nil
}

// ReadFileLimit returns the content of a file that [Open] opens, unless it is
// larger than limit: then the error is tooLarge of its size.
func ReadFileLimit(fsys FS, name string, limit int64, tooLarge func(size int64) error) ([]byte, error) {
	f, err := Open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, tooLarge(info.Size())
	}
	b := make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it was cut since
	}
	return b[:n], err
}
