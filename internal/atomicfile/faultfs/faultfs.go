// Package faultfs is a file system for tests of durability. It works on real
// files, can fail any of its operations, and can lay out what a power cut
// after any of them may leave on the disk.
//
// The model of the disk: what was written to a file is there for certain only
// after the file was synced; a created, renamed or removed name is certain
// only after its directory was synced. Before that each change of a name may
// have reached the disk or not, in any order, and so may a file's bytes.
package faultfs

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// ErrInjected is the failure that [FS] injects.
var ErrInjected = errors.New("faultfs: injected failure")

// FS passes operations on to the operating system and remembers them. It is
// not safe for concurrent use.
type FS struct {
	// FailAt is the number, from 1, of the operation that fails. A failed
	// write writes half. 0 means that none fails.
	FailAt int

	os  atomicfile.FS
	log []op
}

// New returns a file system that fails the operation of that number, or none
// if it is 0.
func New(failAt int) *FS { return &FS{FailAt: failAt, os: atomicfile.OrOS(nil)} }

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
)

type op struct {
	kind    opKind
	name    string
	newName string // of a rename or link
	data    []byte // of a write
}

// Ops returns how many operations there were.
func (f *FS) Ops() int { return len(f.log) }

// do records an operation and does it, or fails.
func (f *FS) do(o op, action func() error) error {
	if len(f.log)+1 == f.FailAt {
		f.log = append(f.log, op{kind: closeFile}) // counts, changes nothing
		return fmt.Errorf("%w of operation %d on %s", ErrInjected, f.FailAt, o.name)
	}
	err := action()
	if err != nil {
		o = op{kind: closeFile}
	}
	f.log = append(f.log, o)
	return err
}

func (f *FS) Create(name string) (atomicfile.File, error) {
	var file atomicfile.File
	err := f.do(op{kind: create, name: name}, func() (err error) {
		file, err = f.os.Create(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &handle{fs: f, name: name, file: file}, nil
}

func (f *FS) Rename(oldname, newname string) error {
	return f.do(op{kind: rename, name: oldname, newName: newname}, func() error { return f.os.Rename(oldname, newname) })
}

func (f *FS) Link(oldname, newname string) error {
	return f.do(op{kind: link, name: oldname, newName: newname}, func() error {
		return f.os.(atomicfile.Linker).Link(oldname, newname)
	})
}

func (f *FS) Remove(name string) error {
	return f.do(op{kind: remove, name: name}, func() error { return f.os.Remove(name) })
}

func (f *FS) Mkdir(name string) error {
	return f.do(op{kind: mkdir, name: name}, func() error { return f.os.Mkdir(name) })
}

func (f *FS) SyncDir(name string) error {
	return f.do(op{kind: syncDir, name: name}, func() error { return nil }) // the log is the disk
}

type handle struct {
	fs     *FS
	name   string
	file   atomicfile.File
	failed bool // a sync failed, so none may follow
}

func (h *handle) Write(b []byte) (int, error) {
	err := h.fs.do(op{kind: write, name: h.name, data: slices.Clone(b)}, func() error {
		_, err := h.file.Write(b)
		return err
	})
	if err != nil {
		n, _ := h.file.Write(b[:len(b)/2])
		return n, err
	}
	return len(b), nil
}

func (h *handle) Sync() error {
	if h.failed {
		panic("faultfs: sync of " + h.name + " after a sync of it failed")
	}
	err := h.fs.do(op{kind: syncFile, name: h.name}, func() error { return nil })
	h.failed = err != nil
	return err
}

func (h *handle) Close() error {
	err := h.fs.do(op{kind: closeFile, name: h.name}, func() error { return nil })
	return errors.Join(err, h.file.Close())
}

// disk is what would be found after a power cut.
type disk struct {
	names map[string]*content // of files; durable
	dirs  map[string]bool
	// pending are the changes of names since the last sync of each directory.
	pending []change
}

type content struct{ data, synced []byte }

// change is one change of a name: it gives a file the name or, with a nil
// file, takes the name away. A rename is a change of two names at once.
type change struct {
	dir   string
	apply map[string]*content
}

// Crashes lays out, one after the other, the states in which a power cut may
// leave the disk after the first n operations, under the directory dst, which
// stands for root. The directory is emptied between states. There are none
// after an operation that changes nothing.
func (f *FS) Crashes(n int, root, dst string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if n > 0 && f.log[n-1].kind == closeFile {
			return
		}
		d := f.replay(n)
		for _, mask := range subsets(len(d.pending)) {
			names := d.after(mask)
			for _, bytes := range []string{"synced", "all", "zeros"} {
				if bytes != "synced" && allSynced(names) {
					break // no other bytes are possible
				}
				what := fmt.Sprintf("after operation %d, name changes %b of %d, bytes: %s", n, mask, len(d.pending), bytes)
				if !yield(what, d.layOut(names, bytes, root, dst)) {
					return
				}
			}
		}
	}
}

// subsets returns bit masks of n changes: none, all, each alone and each left
// out.
func subsets(n int) []int {
	all := 1<<n - 1
	masks := []int{0, all}
	if n == 0 {
		return masks[:1]
	}
	for i := 0; i < n && n > 1; i++ {
		masks = append(masks, 1<<i, all&^(1<<i))
	}
	return masks
}

// replay follows the log on a model of the disk.
func (f *FS) replay(n int) *disk {
	d := &disk{names: map[string]*content{}, dirs: map[string]bool{}}
	current := map[string]*content{} // as the system shows it
	for _, o := range f.log[:n] {
		dir := filepath.Dir(o.name)
		switch o.kind {
		case create:
			c := &content{}
			current[o.name] = c
			d.pending = append(d.pending, change{dir, map[string]*content{o.name: c}})
		case write:
			current[o.name].data = slices.Concat(current[o.name].data, o.data)
		case syncFile:
			current[o.name].synced = current[o.name].data
		case rename:
			c := current[o.name]
			current[o.newName] = c
			delete(current, o.name)
			d.pending = append(d.pending, change{filepath.Dir(o.newName), map[string]*content{o.newName: c, o.name: nil}})
		case link:
			c := current[o.name]
			current[o.newName] = c
			d.pending = append(d.pending, change{filepath.Dir(o.newName), map[string]*content{o.newName: c}})
		case remove:
			delete(current, o.name)
			d.pending = append(d.pending, change{dir, map[string]*content{o.name: nil}})
		case mkdir:
			d.dirs[o.name] = true
		case syncDir:
			d.pending = slices.DeleteFunc(d.pending, func(c change) bool {
				if c.dir == o.name {
					d.apply(d.names, c)
				}
				return c.dir == o.name
			})
		}
	}
	return d
}

func (d *disk) apply(names map[string]*content, c change) {
	for name, file := range c.apply {
		if file == nil {
			delete(names, name)
		} else {
			names[name] = file
		}
	}
}

// after returns the files that are there when those of the pending changes
// that mask has bits for have reached the disk.
func (d *disk) after(mask int) map[string]*content {
	names := maps.Clone(d.names)
	for i, c := range d.pending {
		if mask>>i&1 == 1 {
			d.apply(names, c)
		}
	}
	return names
}

func allSynced(names map[string]*content) bool {
	for _, c := range names {
		if len(c.synced) != len(c.data) {
			return false
		}
	}
	return true
}

func (d *disk) layOut(names map[string]*content, bytes, root, dst string) error {
	if err := os.RemoveAll(dst); err != nil {
		return err
	}
	if err := os.MkdirAll(dst, 0o777); err != nil {
		return err
	}
	at := func(name string) (string, error) {
		rel, err := filepath.Rel(root, name)
		return filepath.Join(dst, rel), err
	}
	for _, dir := range slices.Sorted(maps.Keys(d.dirs)) {
		to, err := at(dir)
		if err == nil {
			err = os.MkdirAll(to, 0o777)
		}
		if err != nil {
			return err
		}
	}
	for name, c := range names {
		to, err := at(name)
		if err == nil {
			err = os.WriteFile(to, c.after(bytes), 0o666)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// after returns the bytes that a file has after the power cut.
func (c *content) after(bytes string) []byte {
	switch bytes {
	case "all":
		return c.data
	case "zeros": // the length reached the disk, the bytes did not
		return append(slices.Clone(c.synced), make([]byte, len(c.data)-len(c.synced))...)
	}
	return c.synced
}
