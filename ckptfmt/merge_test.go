package ckptfmt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// stuckFS fails the sync of a folder, and after that to rename a file to a name.
type stuckFS struct {
	atomicfile.FS
	dir, stuck string
	failed     bool
}

func (f *stuckFS) SyncDir(name string) error {
	f.failed = f.failed || name == f.dir
	if name == f.dir {
		return fs.ErrPermission
	}
	return f.FS.SyncDir(name)
}

func (f *stuckFS) Rename(from, to string) error {
	if f.failed && filepath.Base(to) == f.stuck {
		return fs.ErrInvalid
	}
	return f.FS.Rename(from, to)
}

// A merge that fails gives back the data files that it can: one that is stuck under its new
// name, which the error says, does not keep the others there.
func TestMergeGivesBackWhatItCan(t *testing.T) {
	dir := t.TempDir()
	from := []string{filepath.Join(dir, "in", "a"), filepath.Join(dir, "in", "b"), filepath.Join(dir, "in", "c")}
	for i, prefix := range from {
		if err := saveShard(nil, prefix, string(rune('v'+i)), 1); err != nil {
			t.Fatal(err)
		}
	}
	fsys := &stuckFS{FS: atomicfile.OrOS(nil), dir: dir, stuck: layout.DataName("a", 0, 1)}
	err := MergeBundles(t.Context(), from, filepath.Join(dir, "m"), &MergeOptions{FS: fsys})
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("error %v, want both", err)
	}
	for _, prefix := range from[1:] {
		if names := tensorNames(t, prefix); len(names) == 0 {
			t.Errorf("%s has no tensors", prefix)
		}
		if _, err := os.Stat(layout.DataName(prefix, 0, 1)); err != nil {
			t.Error(err)
		}
	}
}
