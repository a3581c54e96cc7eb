// Package faultfs is a file system for tests of durability. It works on real
// files, can fail any of its operations, and can lay out what a crash after
// any of them may leave on the disk.
//
// The model of the disk: what was written to a file is there for certain only
// after the file was synced; a created, renamed or removed name is certain
// only after its directory was synced. Before that each change of a name may
// have reached the disk or not, in any order, and so may a file's bytes.
package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// ErrInjected is what every failure that [FS] injects matches.
var ErrInjected = errors.New("faultfs: injected failure")

// ErrKilled is the error of all operations of a file system after [Fault.Kill].
var ErrKilled = errors.New("faultfs: the process was killed")

// Fault is one failure.
type Fault struct {
	// At is the number, from 1, of the operation that fails. 0 means that none
	// does.
	At int
	// Err is the cause, a system call's error number for instance. Nil means
	// ErrInjected alone.
	Err error
	// Short makes a write write only half and return that count, without an error. Other operations
	// fail as without it.
	Short bool
	// Lasting lets all operations of the same kind fail from then on until
	// [FS.Heal], as on a disk that is full.
	Lasting bool
	// Kill lets all operations fail from then on, without any effect.
	Kill bool
}

// FS passes operations on to the operating system and remembers them. It is
// safe for concurrent use: operations come one after the other.
type FS struct {
	os atomicfile.FS

	mu    sync.Mutex
	fault Fault
	hit   string // the operation that failed; "" while none did
	kind  opKind // of that one
	log   []op

	resynced string
}

// New returns a file system that fails the operation of that number, or none
// if it is 0. A failed write writes half.
func New(failAt int) *FS { return NewFault(Fault{At: failAt}) }

// NewFault returns a file system with a fault.
func NewFault(fault Fault) *FS { return &FS{os: atomicfile.OrOS(nil), fault: fault} }

type opKind int

const (
	create opKind = iota
	write
	syncFile
	closeFile
	rename
	link
	remove
	mkdir
	syncDir
	open
	read
	closeRead
	mark
)

var opNames = [...]string{"create", "write", "sync", "close", "rename", "link", "remove", "mkdir", "sync directory", "open", "read", "close after reading", "mark"}

func (k opKind) String() string { return opNames[k] }

type op struct {
	kind    opKind
	name    string
	file    *handle // of a create, write or sync: a file may lose its name, and another get it
	newName string  // of a rename or link
	data    []byte  // of a write
	mark    int64
	void    bool // it changed nothing: it failed, or none of its kind does
}

// Ops returns how many operations there were.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// Failed returns what failed, as "sync of NAME, operation 7", or "" if nothing
// did.
func (f *FS) Failed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// FailedKind returns what kind of operation failed first, as "sync directory",
// or "" if none did.
func (f *FS) FailedKind() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hit == "" {
		return ""
	}
	return f.kind.String()
}

// Heal ends a lasting fault.
func (f *FS) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = Fault{}
}

// Kill makes every operation fail from now on, as in a killed process.
func (f *FS) Kill() { f.Break(1, Fault{Kill: true}) }

// Break makes a future operation fail; in counts operations from now, 1 is the next one.
func (f *FS) Break(in int, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault.At = len(f.log) + in
	f.fault = fault
}

// Mark records a number at this place among the operations, for example what was promised to the
// user. See [Disk.Marked].
func (f *FS) Mark(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, op{kind: mark, mark: n})
}

// injected is the cause of an injected failure.
type injected struct{ err error }

func (e injected) Error() string   { return fmt.Sprintf("%v (injected)", e.err) }
func (e injected) Unwrap() []error { return []error{ErrInjected, e.err} }

// do records an operation and does it, or fails with the error that the
// operating system would wrap the cause in.
func (f *FS) do(o op, action func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.log) + 1
	failing := f.fault.At == n || f.fault.At > 0 && n > f.fault.At && (f.fault.Kill || f.fault.Lasting && f.kind == o.kind)
	if failing {
		if f.hit == "" {
			f.hit, f.kind = fmt.Sprintf("%v of %s, operation %d", o.kind, o.name, n), o.kind
		}
		f.log = append(f.log, op{kind: o.kind, name: o.name, void: true})
		return &fs.PathError{Op: o.kind.String(), Path: o.name, Err: f.cause()}
	}
	err := action()
	o.void = err != nil || o.kind == closeFile || o.kind == open || o.kind == read || o.kind == closeRead
	f.log = append(f.log, o)
	return err
}

func (f *FS) cause() error {
	switch {
	case f.fault.Kill:
		return injected{ErrKilled}
	case f.fault.Err != nil:
		return injected{f.fault.Err}
	}
	return ErrInjected
}

// Create implements [atomicfile.FS].
func (f *FS) Create(name string) (atomicfile.File, error) {
	h := &handle{fs: f, name: name}
	err := f.do(op{kind: create, name: name, file: h}, func() (err error) {
		h.file, err = f.os.Create(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Rename implements [atomicfile.FS].
func (f *FS) Rename(oldname, newname string) error {
	return f.do(op{kind: rename, name: oldname, newName: newname}, func() error { return f.os.Rename(oldname, newname) })
}

// Link implements [atomicfile.Linker].
func (f *FS) Link(oldname, newname string) error {
	return f.do(op{kind: link, name: oldname, newName: newname}, func() error {
		return f.os.(atomicfile.Linker).Link(oldname, newname)
	})
}

// Remove implements [atomicfile.FS].
func (f *FS) Remove(name string) error {
	return f.do(op{kind: remove, name: name}, func() error { return f.os.Remove(name) })
}

// Mkdir implements [atomicfile.FS].
func (f *FS) Mkdir(name string) error {
	return f.do(op{kind: mkdir, name: name}, func() error { return f.os.Mkdir(name) })
}

// SyncDir implements [atomicfile.FS].
func (f *FS) SyncDir(name string) error {
	return f.do(op{kind: syncDir, name: name}, func() error { return nil }) // the log is the disk
}

// SyncFile implements [atomicfile.FileSyncer]. For a file that this file system has not made, the
// disk then has its present content.
func (f *FS) SyncFile(name string) error {
	text, err := os.ReadFile(name)
	return f.do(op{kind: syncFile, name: name, data: text}, func() error { return err }) // the log is the disk
}

// Open implements [atomicfile.Opener].
func (f *FS) Open(name string) (atomicfile.ReadFile, error) {
	var file atomicfile.ReadFile
	err := f.do(op{kind: open, name: name}, func() (err error) {
		file, err = atomicfile.Open(f.os, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &readHandle{ReadFile: file, fs: f, name: name}, nil
}

type handle struct {
	fs     *FS
	name   string
	file   atomicfile.File
	failed bool // a sync failed, so none may follow
}

func (h *handle) Write(b []byte) (int, error) {
	n := 0
	err := h.fs.do(op{kind: write, name: h.name, file: h, data: slices.Clone(b)}, func() (err error) {
		n, err = h.file.Write(b)
		return err
	})
	if !errors.Is(err, ErrInjected) || errors.Is(err, ErrKilled) {
		return n, err
	}
	n, _ = h.file.Write(b[:len(b)/2])
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	last := &h.fs.log[len(h.fs.log)-1]
	last.data, last.void = slices.Clone(b[:n]), false
	if h.fs.fault.Short {
		err = nil
	}
	return n, err
}

func (h *handle) Sync() error {
	if h.failed {
		return h.fs.syncAgain(h.name)
	}
	err := h.fs.do(op{kind: syncFile, name: h.name, file: h}, func() error { return nil })
	h.failed = err != nil
	return err
}

func (h *handle) Close() error {
	err := h.fs.do(op{kind: closeFile, name: h.name}, func() error { return nil })
	return errors.Join(err, h.file.Close())
}

// syncAgain does what a kernel may do: it reports success although the data that the failed sync
// left are gone.
func (f *FS) syncAgain(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resynced = name
	return nil
}

// Resynced returns the name of a file that was synced again after a sync of it
// had failed, or "". Nothing should do that: the second may report success for
// data that are lost.
func (f *FS) Resynced() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resynced
}

type readHandle struct {
	atomicfile.ReadFile
	fs   *FS
	name string
}

func (h *readHandle) Read(b []byte) (n int, err error) {
	err = h.fs.do(op{kind: read, name: h.name}, func() (err error) {
		n, err = h.ReadFile.Read(b)
		return err
	})
	return n, err
}

func (h *readHandle) ReadAt(b []byte, offset int64) (n int, err error) {
	err = h.fs.do(op{kind: read, name: h.name}, func() (err error) {
		n, err = h.ReadFile.ReadAt(b, offset)
		return err
	})
	return n, err
}

func (h *readHandle) Close() error {
	err := h.fs.do(op{kind: closeRead, name: h.name}, func() error { return nil })
	return errors.Join(err, h.ReadFile.Close())
}
