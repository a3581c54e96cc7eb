package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// FileSyncer is an [FS] that can make a file durable that another process has
// written.
type FileSyncer interface {
	SyncFile(name string) error
}

// SyncFile makes the bytes of a file durable that another process has written and
// closed. The sync of one descriptor is about all bytes of the file.
func SyncFile(fsys FS, name string) error {
	if s, ok := fsys.(FileSyncer); ok {
		return s.SyncFile(name)
	}
	f, err := os.Open(name)
	return syncClose(f, err)
}

func syncClose(f *os.File, err error) error {
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	return f.Sync()
}

// InRoot returns the operating system's file system below a folder. Names are
// absolute, below the name that the root was opened by; what leads out of the
// folder, by a link or "..", is an error.
func InRoot(root *os.Root) FS { return rootFS{root} }

type rootFS struct{ root *os.Root }

// below returns a name relative to the root.
func (r rootFS) below(name string) (string, error) {
	rel, err := filepath.Rel(r.root.Name(), name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%w: it is not below %s", fs.ErrInvalid, r.root.Name())}
	}
	return rel, nil
}

func (r rootFS) Create(name string) (File, error) {
	rel, err := r.below(name)
	if err != nil {
		return nil, err
	}
	f, err := r.root.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openNoFollow, 0o666)
	if err != nil {
		return nil, err // not f: a nil *os.File in a File is not nil
	}
	return osFile{f}, nil
}

func (r rootFS) Rename(oldname, newname string) error {
	from, err := r.below(oldname)
	if err != nil {
		return err
	}
	to, err := r.below(newname)
	if err != nil {
		return err
	}
	return r.root.Rename(from, to)
}

// Link implements [Linker].
func (r rootFS) Link(oldname, newname string) error {
	from, err := r.below(oldname)
	if err != nil {
		return err
	}
	to, err := r.below(newname)
	if err != nil {
		return err
	}
	return r.root.Link(from, to)
}

func (r rootFS) Remove(name string) error {
	rel, err := r.below(name)
	if err != nil {
		return err
	}
	return r.root.Remove(rel)
}

func (r rootFS) Mkdir(name string) error {
	rel, err := r.below(name)
	if err != nil {
		return err
	}
	return r.root.Mkdir(rel, fs.ModePerm)
}

func (r rootFS) SyncDir(name string) error {
	if _, err := r.below(name); err != nil {
		return err
	}
	return syncDir(name)
}

// SyncFile implements [FileSyncer].
func (r rootFS) SyncFile(name string) error {
	rel, err := r.below(name)
	if err != nil {
		return err
	}
	f, err := r.root.Open(rel)
	return syncClose(f, err)
}
