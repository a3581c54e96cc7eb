package ckptfmt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestMissingShard has a sharded V1 checkpoint that lost a file: its name counts two.
// What is left can be read, is not intact, and is not a whole copy.
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
	if !ok || corrupt.Name != missing || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "one of 2 files is missing") {
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

// TestV1Info has what is known of tensors of V1 without reading them, but for strings.
func TestV1Info(t *testing.T) {
	name := filepath.Join(t.TempDir(), "model.ckpt")
	w, err := CreateV1(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	row := &Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{1, 2}, Data: make([]byte, 8)}
	texts := &Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{[]byte("abc"), []byte("de")}}
	if err := errors.Join(w.AddSlice("parts", []int64{2, 2}, rowSlice(0, 1), row), w.AddSlice("parts", []int64{2, 2}, rowSlice(1, 1), row),
		w.Add("whole", Scalar(int64(1))), w.Add("texts", texts), w.Finish()); err != nil {
		t.Fatal(err)
	}
	r, err := OpenV1(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, want := range map[string]TensorInfo{
		"parts": {DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2, 2}, Bytes: 16, Slices: []TensorSlice{rowSlice(0, 1), rowSlice(1, 1)}},
		"whole": {DType: tfpb.DataType_DT_INT64, Shape: []int64{}, Bytes: 8},
		"texts": {DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Bytes: 5},
	} {
		want.Name = name
		info, err := r.Info(name)
		if diff := cmp.Diff(info, want, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: %v (-got +want):\n%s", name, err, diff)
		}
	}
}
