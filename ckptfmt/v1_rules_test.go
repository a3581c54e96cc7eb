package ckptfmt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// writeV1 writes tensors to a V1 checkpoint.
func writeV1(t *testing.T, name string, tensors ...NamedTensor) {
	t.Helper()
	w, err := CreateV1(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, x := range tensors {
		if err := w.Add(x.Name, x.Tensor); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
}

// listV1 writes a V1 checkpoint that lists a tensor and has no elements.
func listV1(t *testing.T, m *tfpb.SavedSliceMeta) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "model.ckpt")
	m.Name = "x"
	list := &tfpb.SavedTensorSlices{Meta: &tfpb.SavedTensorSliceMeta{Tensor: []*tfpb.SavedSliceMeta{m}}}
	writeTable(t, name, map[string][]byte{"": tfproto.Marshal(list)})
	return name
}

// A file is opened by its name, also by one that is a pattern, and a folder is none.
func TestV1FilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	one := NamedTensor{"x", Scalar(int64(1))}
	writeV1(t, filepath.Join(dir, "m[1]"), one)
	writeV1(t, filepath.Join(dir, "n-00000-of-00001"), one)
	if err := os.Mkdir(filepath.Join(dir, "n-00001-of-00001"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"m[1]", "n-?????-of-00001"} {
		r, err := OpenV1(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := r.Lookup("x"); err != nil || got.Data[0] != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		r.Close()
	}
	if r, err := OpenV1(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder: %v, %v", r, err)
	}
}

// Slices that are none, or lie outside of the tensor, are damage of the list.
func TestV1ListsOfNoSlices(t *testing.T) {
	extent := func(start, length int64) *tfpb.TensorSliceProto {
		return &tfpb.TensorSliceProto{Extent: []*tfpb.TensorSliceProto_Extent{{Start: start, HasLengthHack: &tfpb.TensorSliceProto_Extent_Length{Length: length}}}}
	}
	for _, s := range []*tfpb.TensorSliceProto{extent(-1, 2), extent(3, 2), {}} {
		name := listV1(t, &tfpb.SavedSliceMeta{Type: tfpb.DataType_DT_FLOAT, Shape: shapeProto([]int64{4}), Slice: []*tfpb.TensorSliceProto{s}})
		var corrupt *CorruptError
		if r, err := OpenV1(name); !errors.As(err, &corrupt) {
			t.Errorf("%v: %v, %v", s, r, err)
		}
	}
}

// Texts and tensors without elements whose values are not there are damaged.
func TestV1WithoutValues(t *testing.T) {
	for _, m := range []*tfpb.SavedSliceMeta{
		{Type: tfpb.DataType_DT_STRING, Shape: shapeProto([]int64{2})}, {Type: tfpb.DataType_DT_FLOAT, Shape: shapeProto([]int64{0})},
	} {
		m.Slice = []*tfpb.TensorSliceProto{{Extent: []*tfpb.TensorSliceProto_Extent{{}}}}
		r, err := OpenV1(listV1(t, m))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := r.Lookup("x"); err == nil {
			t.Errorf("%v: %v", m.Type, got)
		}
		if info, err := r.Info("x"); err == nil && m.Type == tfpb.DataType_DT_STRING {
			t.Errorf("%v: %v", m.Type, info)
		}
	}
}

// A checkpoint closes its files, and may be closed again. A file that cannot be closed is an error.
func TestV1Close(t *testing.T) {
	name := filepath.Join(t.TempDir(), "model.ckpt")
	writeV1(t, name, NamedTensor{"x", Scalar(int64(1))})
	r, err := OpenV1(name)
	if err != nil {
		t.Fatal(err)
	}
	file := r.files[0].file
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := file.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("its file was open still: %v", err)
	}
	if r, err = OpenV1(name); err != nil {
		t.Fatal(err)
	}
	r.files[0].file.Close()
	if err := r.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("of a file that is closed: %v", err)
	}
}

// A verification whose context has ended says so.
func TestV1VerifyEndsWithItsContext(t *testing.T) {
	name := filepath.Join(t.TempDir(), "model.ckpt")
	writeV1(t, name, NamedTensor{"x", Scalar(int64(1))})
	r, err := OpenV1(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got []string
	for name, err := range r.Verify(ctx) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		got = append(got, name)
	}
	if !slices.Equal(got, []string{""}) {
		t.Errorf("said is something of %q", got)
	}
}

// What only has a name like that of a shard is none.
func TestV1StrayNames(t *testing.T) {
	dir := t.TempDir()
	writeV1(t, filepath.Join(dir, "m-00000-of-00001"), NamedTensor{"x", Scalar(int64(1))})
	for _, name := range []string{"12", "12345", "m-00001", "00001-of-00001", "m-1-of-00001", "m-abcde-of-00001"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("something else"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r, err := openV1Shards(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(r.files) != 1 {
		t.Errorf("%d files", len(r.files))
	}
	for shards, want := range map[int]bool{1: false, 2: true} {
		if err := lostShard("m", shards); strings.Contains(err.Error(), "one of") != want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("one of %d: %v", shards, err)
		}
	}
}
