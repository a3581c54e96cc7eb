package ckptfmt_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/rewrite"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/inspect"
)

// copyOptions are what a copy leaves out, renames, and how it is written.
type copyOptions struct {
	rewrite.Options
	Keep   func(name string) bool
	Rename func(name string) string
}

// copyCheckpoint writes the parts of a checkpoint again.
func copyCheckpoint(ctx context.Context, from, to string, o copyOptions) (err error) {
	s, err := rewrite.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if o.Keep != nil {
		if err := s.Keep(o.Keep); err != nil {
			return err
		}
	}
	if o.Rename != nil {
		if err := s.Rename(o.Rename); err != nil {
			return err
		}
	}
	return rewrite.Write(ctx, s, to, &o.Options)
}

func TestCopy(t *testing.T) {
	from := filepath.Join(ckptfmt.Fixtures, ckptfmt.V2Set, "partitioned", "model.ckpt")
	sharded := filepath.Join(ckptfmt.Fixtures, ckptfmt.V2Set, "saver_sharded", "model.ckpt-40")
	for _, tc := range []struct {
		name, from string
		o          copyOptions
		same       bool // bytes
		tensors    int
	}{
		{"as it is", from, copyOptions{}, true, 4},
		{"strings", filepath.Join(ckptfmt.Fixtures, ckptfmt.V2Set, "strings", "model.ckpt"), copyOptions{}, true, 6},
		{"empty tensors", filepath.Join(ckptfmt.Fixtures, ckptfmt.V2Set, "scalars_empty", "model.ckpt"), copyOptions{}, true, 7},
		{"three shards", from, copyOptions{Options: rewrite.Options{Shards: 3}}, false, 4},
		{"more shards than tensors", from, copyOptions{Options: rewrite.Options{Shards: 30}}, false, 4},
		{"shards into one", sharded, copyOptions{}, false, 5},
		{"big-endian", filepath.Join(ckptfmt.Fixtures, ckptfmt.V2Set, "damaged", "ok_big_endian", "model.ckpt"), copyOptions{}, false, 8},
		{"to V1", from, copyOptions{Options: rewrite.Options{V1: true}}, false, 4},
		{"from V1", filepath.Join(ckptfmt.Fixtures, ckptfmt.V1Set, "sliced", "model.ckpt"), copyOptions{}, false, 3},
		{"some", from, copyOptions{Keep: func(n string) bool { return strings.HasPrefix(n, "emb/") }}, false, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "copy")
			if err := copyCheckpoint(t.Context(), tc.from, to, tc.o); err != nil {
				t.Fatal(err)
			}
			if n := len(ckptfmt.TensorNames(t, to)); n != tc.tensors {
				t.Errorf("%d tensors, want %d", n, tc.tensors)
			}
			for _, d := range differences(t, tc.from, to) {
				if d.A != nil && d.B != nil || tc.name != "some" {
					t.Errorf("%s differs", d.Name)
				}
			}
			for _, f := range []string{".index", ".data-00000-of-00001"} {
				if !tc.same {
					break
				}
				a, aerr := os.ReadFile(tc.from + f)
				b, berr := os.ReadFile(to + f)
				if aerr != nil || berr != nil || string(a) != string(b) {
					t.Errorf("%s differs, %v, %v", f, aerr, berr)
				}
			}
		})
	}
}

func differences(t *testing.T, a, b string) []inspect.Difference {
	t.Helper()
	ra, err := ckptfmt.Open(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ra.Close()
	rb, err := ckptfmt.Open(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rb.Close()
	var list []inspect.Difference
	for d, err := range inspect.Diff(t.Context(), ra, rb, nil) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

func TestCopyRefuses(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	ckptfmt.SaveSmall(t, from)
	all := func(string) string { return "same" }
	if err := copyCheckpoint(t.Context(), from, filepath.Join(dir, "to"), copyOptions{Rename: all}); !errors.Is(err, ckptfmt.ErrExists) {
		t.Errorf("all under one name: %v", err)
	}
	none := func(string) bool { return false }
	if err := copyCheckpoint(t.Context(), from, filepath.Join(dir, "to"), copyOptions{Keep: none}); !errors.Is(err, ckptfmt.ErrNotFound) {
		t.Errorf("nothing kept: %v", err)
	}
	damaged := filepath.Join(ckptfmt.Fixtures, ckptfmt.V2Set, "damaged", "data_flip", "model.ckpt")
	if err := copyCheckpoint(t.Context(), damaged, filepath.Join(dir, "to"), copyOptions{}); !errors.Is(err, ckptfmt.ErrChecksum) {
		t.Errorf("damaged: %v", err)
	}
	if files := ckptfmt.FileNames(t, dir); len(files) != 2 {
		t.Errorf("files %q", files)
	}
}
