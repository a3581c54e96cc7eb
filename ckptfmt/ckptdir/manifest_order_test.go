package ckptdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

// A manifest that is there is true at every moment: it goes before the files
// that it names change.
func TestManifestGoesFirst(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(fsys ckptfmt.FS, dir string) error
	}{
		{"saved again", func(fsys ckptfmt.FS, dir string) error {
			return saveParts(fsys, filepath.Join(dir, "model.ckpt-1"), 2, 1)
		}},
		{"removed", func(fsys ckptfmt.FS, dir string) error {
			return Remove(filepath.Join(dir, "model.ckpt-1"), &ckptfmt.FileOptions{FS: fsys})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := t.TempDir()
			prefix := filepath.Join(root, "model.ckpt-1")
			fsys := faultfs.New(0)
			if err := saveParts(fsys, prefix, 1, 1); err != nil {
				t.Fatal(err)
			}
			if err := manifest.Write(t.Context(), prefix, &manifest.Manifest{Step: 1}, &ckptfmt.FileOptions{FS: fsys}); err != nil {
				t.Fatal(err)
			}
			before := fsys.Ops()
			if err := tc.change(fsys, root); err != nil {
				t.Fatal(err)
			}
			dst := filepath.Join(t.TempDir(), "disk")
			for n := before; n <= fsys.Ops(); n++ {
				for state, err := range fsys.Crashes(n, root, dst) {
					if err != nil {
						t.Fatal(err)
					}
					checkManifest(t, state, filepath.Join(dst, "model.ckpt-1"))
				}
			}
			if _, err := os.Stat(manifest.Name(prefix)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old manifest is left: %v", err)
			}
		})
	}
}

// checkManifest checks that a checkpoint that is whole has no manifest that is
// not true.
func checkManifest(t *testing.T, state, prefix string) {
	t.Helper()
	if _, err := os.Stat(layout.IndexName(prefix)); err != nil {
		return // no checkpoint any more
	}
	for name, err := range manifest.Verify(t.Context(), prefix) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s: %v", state, name, err)
		}
	}
}

func TestMoveTakesManifestAlong(t *testing.T) {
	dir := t.TempDir()
	if err := saveStep(nil, dir, 7, 1); err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(dir, "model.ckpt-7")
	to := prefix + "0"
	if err := Move(prefix, to); err != nil {
		t.Fatal(err)
	}
	files := 0
	for name, err := range manifest.Verify(t.Context(), to) {
		files++
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if files != 3 {
		t.Errorf("%d files", files)
	}
}
