package ckptfmt_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

type diskAction func(ctx context.Context, fsys ckptfmt.FS, dir string) error

// The actions write the tensors "a" and "b" under "to" in a directory that has
// them whole under "from", and as parts under "temp/part0" and "temp/part1".
var diskActions = map[string]diskAction{
	"write": func(_ context.Context, fsys ckptfmt.FS, dir string) error {
		return writeAB(fsys, filepath.Join(dir, "to"))
	},
	"merge": func(ctx context.Context, fsys ckptfmt.FS, dir string) error {
		parts := []string{filepath.Join(dir, "temp", "part0"), filepath.Join(dir, "temp", "part1")}
		return ckptfmt.MergeBundles(ctx, parts, filepath.Join(dir, "to"), &ckptfmt.MergeOptions{FS: fsys, DeleteOldDirs: true})
	},
	"copy": func(ctx context.Context, fsys ckptfmt.FS, dir string) error {
		return copyCheckpoint(ctx, filepath.Join(dir, "from"), filepath.Join(dir, "to"), copyOptions{Options: rewrite.Options{FS: fsys}})
	},
	"copy in shards": func(ctx context.Context, fsys ckptfmt.FS, dir string) error {
		return copyCheckpoint(ctx, filepath.Join(dir, "from"), filepath.Join(dir, "to"), copyOptions{Options: rewrite.Options{FS: fsys, Shards: 2}})
	},
	"copy as V1": func(ctx context.Context, fsys ckptfmt.FS, dir string) error {
		return copyCheckpoint(ctx, filepath.Join(dir, "from"), filepath.Join(dir, "to"), copyOptions{Options: rewrite.Options{FS: fsys, V1: true}})
	},
	"copy files": func(ctx context.Context, fsys ckptfmt.FS, dir string) error {
		return rewrite.CopyFiles(ctx, filepath.Join(dir, "from"), filepath.Join(dir, "to"), &rewrite.CopyFilesOptions{FS: fsys})
	},
}

func writeAB(fsys ckptfmt.FS, prefix string, names ...string) (err error) {
	w, err := ckptfmt.CreateBundle(prefix, &ckptfmt.BundleWriterOptions{FS: fsys})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if names == nil {
		names = []string{"a", "b"}
	}
	for _, name := range names {
		if err := w.Add(name, ckptfmt.Scalar(name+strings.Repeat("x", 5000))); err != nil {
			return err
		}
	}
	return w.Finish()
}

// layOutAB makes the directory of the actions.
func layOutAB(t *testing.T, over bool) string {
	t.Helper()
	dir, fsys := t.TempDir(), atomicfile.NoSync(nil)
	err := writeSources(fsys, dir)
	if over {
		err = errors.Join(err, writeAB(fsys, filepath.Join(dir, "to"), "old"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeSources(fsys ckptfmt.FS, dir string) error {
	return errors.Join(writeAB(fsys, filepath.Join(dir, "from")), writeAB(fsys, filepath.Join(dir, "temp", "part0"), "a"), writeAB(fsys, filepath.Join(dir, "temp", "part1"), "b"))
}

// whatIs returns the names of a checkpoint's tensors; "" where there is none.
func whatIs(t *testing.T, prefix string) (names string) {
	t.Helper()
	r, err := ckptfmt.Open(prefix, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for info, err := range r.Tensors() {
		if err != nil {
			t.Fatal(err)
		}
		names += info.Name
	}
	for name, err := range r.Verify(t.Context()) {
		if err != nil {
			t.Errorf("%s: %s: %v", prefix, name, err)
		}
	}
	return names
}

// TestDiskFails lets each operation fail of everything that writes checkpoints, once
// or from then on. The error says so; what there is under a name afterwards is whole:
// the old checkpoint, the new one, or none; and the source stays.
func TestDiskFails(t *testing.T) {
	for what, action := range diskActions {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for _, fault := range []faultfs.Fault{{Short: true}, {Kill: true}} {
				for _, over := range []bool{false, true} {
					if over && what == "copy as V1" {
						continue // the old one, which is not a V1 checkpoint, stays
					}
					for fault.At = 1; failOnce(t, action, fault, over); fault.At++ {
					}
				}
			}
		})
	}
}

// failOnce reports whether the action came as far as the operation that fails.
func failOnce(t *testing.T, action diskAction, fault faultfs.Fault, over bool) bool {
	t.Helper()
	dir := layOutAB(t, over)
	fsys := faultfs.NewFault(fault)
	err := action(t.Context(), fsys, dir)
	got := whatIs(t, filepath.Join(dir, "to"))
	if fsys.Ops() < fault.At {
		if err != nil || got != "ab" {
			t.Errorf("without a fault: %v, and %q is there", err, got)
		}
		return false
	}
	when := fmt.Sprintf("%s (%+v)", fsys.Failed(), fault)
	if err == nil && got != "ab" || err != nil && !errors.Is(err, faultfs.ErrInjected) && !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%s: error %v, and %q is there", when, err, got)
	}
	if got != "" && got != "ab" && (got != "old" || !over) {
		t.Errorf("%s: %q is there", when, got)
	}
	switch fsys.FailedKind() {
	case "create", "write", "sync", "mkdir": // nothing is published before all of this is done
		if over && got != "old" {
			t.Errorf("%s: %q is there instead of the old one", when, got)
		}
	}
	if source := whatIs(t, filepath.Join(dir, "from")); source != "ab" {
		t.Errorf("%s: the source has %q", when, source)
	}
	if fault.Kill {
		return true
	}
	if got != "ab" {
		if parts := whatIs(t, filepath.Join(dir, "temp", "part0")) + whatIs(t, filepath.Join(dir, "temp", "part1")); parts != "ab" {
			t.Errorf("%s: the parts have %q, the whole has %q", when, parts, got)
		}
	}
	if fsys.FailedKind() != "remove" {
		checkLeft(t, when, dir, err)
	}
	return true
}

// checkLeft looks for what an action that failed has left.
func checkLeft(t *testing.T, when, dir string, failed error) {
	t.Helper()
	for _, name := range []string{"*", "to_temp/*", "temp/*"} {
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			if layout.IsTemp(name) || failed != nil && strings.Contains(name, "to_temp") {
				t.Errorf("%s: %s is left", when, name)
			}
		}
	}
}

// TestAnnouncedIsDurable cuts the power after each action that writes a checkpoint has
// said that all is well: without a fault, and with each operation failing in turn. What
// it has announced is there, whole.
func TestAnnouncedIsDurable(t *testing.T) {
	for what, action := range diskActions {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dst := filepath.Join(t.TempDir(), "disk")
			for at := 0; ; at++ {
				dir, fsys := t.TempDir(), faultfs.New(0)
				if err := writeSources(fsys, dir); err != nil {
					t.Fatal(err)
				}
				if at > 0 {
					fsys.Break(at, faultfs.Fault{})
				}
				err := action(t.Context(), fsys, dir)
				if at > 0 && fsys.Failed() == "" {
					break
				}
				if err != nil {
					continue
				}
				for state, err := range fsys.Crashes(fsys.Ops(), dir, dst) {
					if err != nil {
						t.Fatal(err)
					}
					if got := whatIs(t, filepath.Join(dst, "to")); got != "ab" {
						t.Errorf("%s failed, %s: %q is there", fsys.Failed(), state, got)
					}
				}
			}
		})
	}
}

// TestPowerCutMidway cuts the power after each operation of what writes checkpoints: what
// there is is whole.
func TestPowerCutMidway(t *testing.T) {
	for what, action := range diskActions {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, dst, fsys := t.TempDir(), filepath.Join(t.TempDir(), "disk"), faultfs.New(0)
			if err := writeSources(fsys, dir); err != nil {
				t.Fatal(err)
			}
			first := fsys.Ops()
			if err := action(t.Context(), fsys, dir); err != nil {
				t.Fatal(err)
			}
			for n := first + 1; n <= fsys.Ops(); n++ {
				for state, err := range fsys.Crashes(n, dir, dst) {
					if err != nil {
						t.Fatal(err)
					}
					if got := whatIs(t, filepath.Join(dst, "to")); got != "" && got != "ab" {
						t.Errorf("%s: %q is there", state, got)
					}
				}
			}
		})
	}
}
