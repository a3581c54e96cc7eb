package trainerd

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

var errKilled = errors.New("killed")

// crashFS is a file system for soaks. It lets a run die at an operation, and
// then lays out one of the states, chosen at random, in which a power cut may
// leave the disk. The bytes that are durable are kept in memory; the files in
// the directory are what the system shows, for the readers.
//
// The model of the disk is that of package faultfs.
type crashFS struct {
	t   *testing.T
	os  atomicfile.FS
	rnd *rand.Rand

	mu      sync.Mutex
	left    int // operations until death; negative: immortal
	dead    bool
	names   map[string]*crashNode // as the system shows them
	durable map[string]*crashNode
	pending []nameChange
}

type crashNode struct{ data, synced []byte }

// nameChange is a change of names that is not durable yet; a nil node takes a
// name away.
type nameChange struct {
	dir   string
	names map[string]*crashNode
}

func newCrashFS(t *testing.T, rnd *rand.Rand) *crashFS {
	return &crashFS{t: t, os: atomicfile.OrOS(nil), rnd: rnd, left: -1, names: map[string]*crashNode{}, durable: map[string]*crashNode{}}
}

// liveFor lets the file system die at the operation of that number.
func (f *crashFS) liveFor(ops int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.dead = ops, false
}

func (f *crashFS) isDead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// do carries out an operation unless the process is dead.
func (f *crashFS) do(op func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		f.dead = true
	}
	if f.dead {
		return errKilled
	}
	f.left--
	return op()
}

func (f *crashFS) change(dir string, names map[string]*crashNode) {
	for name, n := range names {
		if n == nil {
			delete(f.names, name)
		} else {
			f.names[name] = n
		}
	}
	f.pending = append(f.pending, nameChange{dir, names})
}

func (f *crashFS) Create(name string) (file atomicfile.File, err error) {
	err = f.do(func() error {
		real, err := f.os.Create(name)
		if err != nil {
			return err
		}
		n := new(crashNode)
		f.change(filepath.Dir(name), map[string]*crashNode{name: n})
		file = &crashFile{f, real, n}
		return nil
	})
	return file, err
}

func (f *crashFS) Rename(oldname, newname string) error {
	return f.do(func() error {
		if err := f.os.Rename(oldname, newname); err != nil {
			return err
		}
		f.change(filepath.Dir(newname), map[string]*crashNode{newname: f.names[oldname], oldname: nil})
		return nil
	})
}

func (f *crashFS) Link(oldname, newname string) error {
	return f.do(func() error {
		if err := os.Link(oldname, newname); err != nil {
			return err
		}
		f.change(filepath.Dir(newname), map[string]*crashNode{newname: f.names[oldname]})
		return nil
	})
}

func (f *crashFS) Remove(name string) error {
	return f.do(func() error {
		if err := f.os.Remove(name); err != nil {
			return err
		}
		f.change(filepath.Dir(name), map[string]*crashNode{name: nil})
		return nil
	})
}

func (f *crashFS) Mkdir(name string) error {
	return f.do(func() error { return f.os.Mkdir(name) })
}

func (f *crashFS) SyncDir(dir string) error {
	return f.do(func() error {
		f.pending = slices.DeleteFunc(f.pending, func(c nameChange) bool {
			if c.dir == dir {
				f.apply(c)
			}
			return c.dir == dir
		})
		return nil
	})
}

func (f *crashFS) apply(c nameChange) {
	for name, n := range c.names {
		if n == nil {
			delete(f.durable, name)
		} else {
			f.durable[name] = n
		}
	}
}

type crashFile struct {
	fs   *crashFS
	real atomicfile.File
	node *crashNode
}

func (c *crashFile) Write(b []byte) (int, error) {
	err := c.fs.do(func() error {
		c.node.data = append(c.node.data, b...)
		_, err := c.real.Write(b)
		return err
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (c *crashFile) Sync() error {
	return c.fs.do(func() error { c.node.synced = c.node.data; return nil })
}

func (c *crashFile) Close() error { return c.real.Close() }

// cutPower makes the directory what a power cut leaves of it: of the changes of
// names that were not synced some, of the bytes that were not synced all, none,
// some, or zeros.
func (f *crashFS) cutPower() {
	f.mu.Lock()
	defer f.mu.Unlock()
	share := []float64{0, 0.5, 1}[f.rnd.IntN(3)]
	for _, c := range f.pending {
		if f.rnd.Float64() < share {
			f.apply(c)
		}
	}
	for name := range f.names {
		f.must(os.Remove(name))
	}
	f.names, f.pending = map[string]*crashNode{}, nil
	for _, name := range slices.Sorted(maps.Keys(f.durable)) {
		data := f.afterCut(f.durable[name])
		n := &crashNode{data, data}
		f.durable[name], f.names[name] = n, n
		f.must(os.WriteFile(name, data, 0o666))
	}
}

func (f *crashFS) afterCut(n *crashNode) []byte {
	unsynced := n.data[len(n.synced):]
	switch f.rnd.IntN(4) {
	case 0:
		return n.data
	case 1:
		return n.data[:len(n.synced)+f.rnd.IntN(len(unsynced)+1)]
	case 2:
		return append(slices.Clone(n.synced), make([]byte, len(unsynced))...)
	}
	return n.synced
}

func (f *crashFS) must(err error) {
	if err != nil {
		f.t.Fatal(err)
	}
}
