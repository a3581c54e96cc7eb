package childtest

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// PickyDisk is a disk on which some operations fail: "create", "write", "close", "rename", "remove",
// "mkdir" and "sync" of names below the logdir.
type PickyDisk struct {
	atomicfile.FS
	Logdir string
	Fails  func(op, name string) bool
}

func (d PickyDisk) check(op, name string) error {
	below, err := filepath.Rel(d.Logdir, name)
	if err == nil && d.Fails(op, below) {
		return &fs.PathError{Op: op, Path: name, Err: syscall.EIO}
	}
	return nil
}

func (d PickyDisk) Create(name string) (atomicfile.File, error) {
	if err := d.check("create", name); err != nil {
		return nil, err
	}
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return pickyFile{f, d, name}, nil
}

// pickyFile is a file of a PickyDisk, on which "write" and "close" may fail.
type pickyFile struct {
	atomicfile.File
	disk PickyDisk
	name string
}

func (f pickyFile) Write(b []byte) (int, error) {
	if err := f.disk.check("write", f.name); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f pickyFile) Close() error {
	return errors.Join(f.File.Close(), f.disk.check("close", f.name))
}

func (d PickyDisk) Rename(from, to string) error {
	if err := d.check("rename", to); err != nil {
		return err
	}
	return d.FS.Rename(from, to)
}

func (d PickyDisk) Remove(name string) error {
	if err := d.check("remove", name); err != nil {
		return err
	}
	return d.FS.Remove(name)
}

func (d PickyDisk) Mkdir(name string) error {
	if err := d.check("mkdir", name); err != nil {
		return err
	}
	return d.FS.Mkdir(name)
}

func (d PickyDisk) SyncDir(name string) error {
	if err := d.check("sync", name); err != nil {
		return err
	}
	return d.FS.SyncDir(name)
}
