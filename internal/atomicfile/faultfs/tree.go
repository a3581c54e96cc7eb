package faultfs

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Tree is a directory that is made what one state after another says. Between
// two states it changes only the files that differ, which are few when they
// come from one [Disk]. A caller that changes something below it calls Forget.
type Tree struct {
	dir   string
	known bool // that files and dirs are what there is
	files map[string][]byte
	dirs  []string
}

// NewTree returns a tree for the directory, which need not exist.
func NewTree(dir string) *Tree { return &Tree{dir: dir} }

// Forget says that the directory may hold anything.
func (t *Tree) Forget() { t.known = false }

// LayOut makes the directory what the state says.
func (t *Tree) LayOut(s State) error {
	dirs := s.allDirs()
	if !t.known || !slices.Equal(dirs, t.dirs) {
		if err := t.clear(dirs); err != nil {
			return err
		}
	}
	t.known = false // until all has succeeded
	for name := range t.files {
		if _, stays := s.Files[name]; stays {
			continue
		}
		if err := os.Remove(filepath.Join(t.dir, name)); err != nil {
			return err
		}
	}
	for name, data := range s.Files {
		if old, ok := t.files[name]; ok && same(old, data) {
			continue
		}
		if err := os.WriteFile(filepath.Join(t.dir, name), data, 0o666); err != nil {
			return err
		}
	}
	t.files, t.known = s.Files, true
	return nil
}

// clear leaves nothing but empty directories.
func (t *Tree) clear(dirs []string) error {
	t.known, t.files, t.dirs = false, nil, dirs
	if err := os.RemoveAll(t.dir); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(t.dir, dir), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// allDirs returns the directories of a state and those that its files are in,
// the root first.
func (s State) allDirs() []string {
	dirs := map[string]bool{".": true}
	for _, dir := range s.Dirs {
		dirs[dir] = true
	}
	for name := range s.Files {
		dirs[filepath.Dir(name)] = true
	}
	return slices.Sorted(maps.Keys(dirs))
}

// same compares contents, most of which are in the same memory.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}
