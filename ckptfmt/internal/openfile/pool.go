package openfile

import (
	"container/list"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// File is a file that does not keep a descriptor all the time: a process may have
// fewer than the files that it reads from. Where very many are open, the one that was not
// read for the longest time is closed, and is opened again when it is read. It is safe for
// concurrent use.
type File struct {
	name string
	open func() (atomicfile.ReadFile, error)
	info fs.FileInfo // when it was opened first
	in   *pool

	// These are guarded by the pool.
	file   atomicfile.ReadFile // nil while it has no descriptor
	users  int                 // what reads at the moment
	idle   *list.Element       // its place among those that nobody reads
	closed bool
}

// pool is the files that share a number of descriptors.
type pool struct {
	most func() int

	mu   sync.Mutex
	open int       // descriptors
	idle list.List // of *File, with a descriptor that nobody uses, the longest first
}

// process has the files of the process.
var process = &pool{most: mostOpen}

// anyway is how many descriptors files may have, however few a process may have; atMost,
// however many.
const anyway, atMost = 8, 1024

// Shared opens a file of that name, through fsys where that opens files.
func Shared(fsys atomicfile.FS, name string) (*File, error) {
	return process.add(name, func() (atomicfile.ReadFile, error) { return atomicfile.Open(fsys, name) })
}

func (p *pool) add(name string, open func() (atomicfile.ReadFile, error)) (*File, error) {
	f := &File{name: name, open: open, in: p}
	p.mu.Lock()
	p.makeRoom()
	p.open++ // before the file is, which may take long
	p.mu.Unlock()
	file, err := open()
	if err == nil {
		if f.info, err = file.Stat(); err != nil {
			_ = file.Close() // it was only read
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.open--
		return nil, err
	}
	f.file, f.idle = file, p.idle.PushBack(f)
	return f, nil
}

// makeRoom closes files that nobody reads until another may be opened. The caller holds
// the lock.
func (p *pool) makeRoom() {
	for p.open >= p.most() && p.idle.Len() > 0 {
		f := p.idle.Remove(p.idle.Front()).(*File)
		f.idle = nil
		_ = f.drop() // it was only read
	}
}

// drop closes the descriptor. The caller holds the lock.
func (f *File) drop() error {
	file := f.file
	f.file = nil
	f.in.open--
	return file.Close()
}

// Use calls do with the open file.
func (f *File) Use(do func(atomicfile.ReadFile) error) error {
	file, err := f.begin()
	if err != nil {
		return err
	}
	defer f.end()
	return do(file)
}

func (f *File) begin() (atomicfile.ReadFile, error) {
	p := f.in
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case f.closed:
		return nil, &os.PathError{Op: "read", Path: f.name, Err: os.ErrClosed}
	case f.idle != nil:
		p.idle.Remove(f.idle)
		f.idle = nil
	case f.file == nil:
		if err := f.reopen(); err != nil {
			return nil, err
		}
	}
	f.users++
	return f.file, nil
}

// reopen opens the file again. The caller holds the lock.
func (f *File) reopen() error {
	f.in.makeRoom()
	file, err := f.open()
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !isSame(f.info, info) {
		err = fmt.Errorf("%s was replaced while it was read", f.name)
	}
	if err != nil {
		_ = file.Close() // it was only read
		return err
	}
	f.file = file
	f.in.open++
	return nil
}

// isSame reports whether two descriptions are of one file.
func isSame(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) || a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (f *File) end() {
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	if f.closed {
		_ = f.drop() // it was only read
		return
	}
	f.idle = f.in.idle.PushBack(f)
}

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(b []byte, offset int64) (n int, err error) {
	file, err := f.begin()
	if err != nil {
		return 0, err
	}
	defer f.end()
	return file.ReadAt(b, offset)
}

// Name returns the name that the file was opened by.
func (f *File) Name() string { return f.name }

// Size returns the number of bytes that the file had when it was opened first.
func (f *File) Size() int64 { return f.info.Size() }

// Close closes the file, when what reads it has ended.
func (f *File) Close() error {
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	if f.closed {
		return &os.PathError{Op: "close", Path: f.name, Err: os.ErrClosed}
	}
	f.closed = true
	if f.idle == nil {
		return nil // it has no descriptor, or end closes it
	}
	f.in.idle.Remove(f.idle)
	f.idle = nil
	return f.drop()
}

var _ interface {
	io.ReaderAt
	io.Closer
} = (*File)(nil)
