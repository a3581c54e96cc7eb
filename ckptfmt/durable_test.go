package ckptfmt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
)

func saveShard(fsys FS, prefix, name string, step int64) (err error) {
	w, err := CreateBundle(prefix, &BundleWriterOptions{FS: fsys})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Add(name, Scalar(float32(step))); err != nil {
		return err
	}
	if err := w.Add(name+"/step", Scalar(step)); err != nil {
		return err
	}
	return w.Finish()
}

// A checkpoint saved again under its name is the old one, the new one or none,
// never a mixture.
func TestPowerCutSamePrefix(t *testing.T) {
	root := t.TempDir()
	prefix := filepath.Join(root, "model.ckpt")
	fsys := faultfs.New(0)
	first := 0
	for step := int64(1); step <= 2; step++ {
		first = fsys.Ops() // before the second
		if err := saveShard(fsys, prefix, "w", step); err != nil {
			t.Fatal(err)
		}
	}
	dst := filepath.Join(t.TempDir(), "disk")
	for n := first; n <= fsys.Ops(); n++ {
		for state, err := range fsys.Crashes(n, root, dst) {
			if err != nil {
				t.Fatal(err)
			}
			r, err := OpenBundle(filepath.Join(dst, "model.ckpt"), nil)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", state, err)
			}
			for name, err := range r.Verify(t.Context()) {
				if err != nil {
					t.Errorf("%s: %s: %v", state, name, err)
				}
			}
			r.Close()
		}
	}
}
