package faultfs

import (
	"errors"
	"io/fs"
	"os"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// Mistake is a mistake that a writer of files can make. A search for faults
// that does not find it is worth nothing.
type Mistake string

// The mistakes.
const (
	NoSync       Mistake = "no sync"
	NoDirSync    Mistake = "no sync of directories"
	InPlace      Mistake = "write in place"
	IgnoreErrors Mistake = "errors ignored"
)

// Mistakes are all of them.
var Mistakes = []Mistake{NoSync, NoDirSync, InPlace, IgnoreErrors}

// Over returns a file system that makes the mistake over another, which may be
// nil for the operating system's.
func (m Mistake) Over(fsys atomicfile.FS) atomicfile.FS {
	return &mistakenFS{FS: atomicfile.OrOS(fsys), mistake: m}
}

type mistakenFS struct {
	atomicfile.FS
	mistake Mistake
}

func (m *mistakenFS) Create(name string) (atomicfile.File, error) {
	f, err := m.FS.Create(name)
	switch {
	case err == nil:
		return mistakenFile{f, m.mistake}, nil
	case m.mistake == IgnoreErrors && !errors.Is(err, fs.ErrExist):
		return nowhere{}, nil
	}
	return nil, err
}

// Open implements [atomicfile.Opener].
func (m *mistakenFS) Open(name string) (atomicfile.ReadFile, error) {
	return atomicfile.Open(m.FS, name)
}

// Link implements [atomicfile.Linker].
func (m *mistakenFS) Link(oldname, newname string) error {
	return atomicfile.Link(m.FS, oldname, newname)
}

// Rename, with writing in place, does what a program does that opens the file under its own name
// and writes it again.
func (m *mistakenFS) Rename(oldname, newname string) error {
	if m.mistake != InPlace {
		return m.ignore(m.FS.Rename(oldname, newname))
	}
	data, err := os.ReadFile(oldname)
	if err != nil {
		return err
	}
	if err := m.FS.Remove(newname); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := m.FS.Create(newname)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close(), m.FS.Remove(oldname))
}

func (m *mistakenFS) SyncDir(name string) error {
	if m.mistake == NoSync || m.mistake == NoDirSync {
		return nil
	}
	return m.ignore(m.FS.SyncDir(name))
}

// SyncFile implements [atomicfile.FileSyncer].
func (m *mistakenFS) SyncFile(name string) error {
	if m.mistake == NoSync {
		return nil
	}
	return m.ignore(atomicfile.SyncFile(m.FS, name))
}

func (m *mistakenFS) ignore(err error) error {
	if m.mistake == IgnoreErrors {
		return nil
	}
	return err
}

type mistakenFile struct {
	atomicfile.File
	mistake Mistake
}

func (f mistakenFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if f.mistake == IgnoreErrors {
		return len(p), nil
	}
	return n, err
}

func (f mistakenFile) Sync() error {
	if f.mistake == NoSync {
		return nil
	}
	err := f.File.Sync()
	if f.mistake == IgnoreErrors {
		return nil
	}
	return err
}

// nowhere is a file that could not be created, for whom that does not matter.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Sync() error                 { return nil }
func (nowhere) Close() error                { return nil }
