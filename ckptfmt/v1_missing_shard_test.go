package ckptfmt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissingShard has a sharded V1 checkpoint that lost a file: its name counts two.
// What is left can be read, is not intact, and is no whole copy.
func TestMissingShard(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../fixtures/ckpt_v1/saver_sharded")); err != nil {
		t.Fatal(err)
	}
	prefix := filepath.Join(dir, "model.ckpt-3")
	if err := verifyAll(t, prefix); err != nil {
		t.Fatalf("whole: %v", err)
	}
	missing := prefix + "-00000-of-00002"
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	err := verifyAll(t, prefix)
	corrupt, ok := errors.AsType[*CorruptError](err)
	if !ok || corrupt.Name != missing || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Verify: %v", err)
	}
	r, err := Open(prefix, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	parts, damaged, err := IntactParts(r)
	if err != nil || len(damaged) != 1 || !strings.HasSuffix(missing, damaged[0].Name) {
		t.Errorf("IntactParts: %d parts, damaged %v, %v", len(parts), damaged, err)
	}
	for _, p := range parts {
		if _, err := r.Lookup(p.Name); err != nil {
			t.Errorf("tensor %s: %v", p.Name, err)
		}
	}
	var bad []string
	for info, err := range r.Tensors() {
		if err != nil {
			bad = append(bad, info.Name)
		}
	}
	if len(bad) != 1 || !strings.HasSuffix(missing, bad[0]) {
		t.Errorf("Tensors: damaged %q", bad)
	}
	if one, err := OpenV1(prefix + "-00001-of-00002"); err != nil || one.missingShard() != nil {
		t.Errorf("one file by its name: %v", err)
	} else {
		one.Close()
	}
}
