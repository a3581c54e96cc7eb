package ckptfmt

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	tfpb "github.com/trainerd/trainerd/proto"
)

// writeParts copies a checkpoint part by part.
func writeParts(t *testing.T, from, to string) error {
	t.Helper()
	r, err := Open(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	parts, err := Parts(r)
	if err != nil {
		return err
	}
	w, err := CreateBundle(to, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, p := range parts {
		if err := w.AddPart(p); err != nil {
			return err
		}
	}
	return w.Finish()
}

func TestPartsGiveTheSameFiles(t *testing.T) {
	for _, name := range []string{"dtypes", "partitioned", "strings", "scalars_empty", "unsorted_input", "variant"} {
		from, to := filepath.Join("../fixtures/ckpt_v2", name, "model.ckpt"), filepath.Join(t.TempDir(), "copy")
		if err := writeParts(t, from, to); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, suffix := range []string{".index", ".data-00000-of-00001"} {
			want, err := os.ReadFile(from + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(to + suffix); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s%s differs: %v", name, suffix, err)
			}
		}
	}
}

func TestPartLoadsWhatLookupGives(t *testing.T) {
	for _, prefix := range []string{"../fixtures/ckpt_v2/dtypes/model.ckpt", "../fixtures/ckpt_v1/dtypes/model.ckpt", "../fixtures/ckpt_v2/damaged/ok_big_endian/model.ckpt", "../fixtures/ckpt_v2/strings/model.ckpt"} {
		r, err := Open(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		parts, err := Parts(r)
		if err != nil || len(parts) == 0 {
			t.Fatalf("%s: %d parts, %v", prefix, len(parts), err)
		}
		for _, p := range parts {
			got, err := p.Load()
			if err != nil {
				t.Fatal(err)
			}
			want, err := r.Lookup(p.Name)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Data, want.Data) || !cmp.Equal(got.Strings, want.Strings) || got.DType != want.DType {
				t.Errorf("%s: %q differs", prefix, p.Name)
			}
		}
	}
}

// Damage is found when the last byte was read, and then nothing is published.
func TestPartOfDamagedBundle(t *testing.T) {
	to := filepath.Join(t.TempDir(), "copy")
	err := writeParts(t, "../fixtures/ckpt_v2/damaged/data_flip/model.ckpt", to)
	var damage *CorruptError
	if !errors.As(err, &damage) || !errors.Is(err, ErrChecksum) {
		t.Errorf("err = %v, want a checksum error", err)
	}
	if layout.Exists(to) {
		t.Error("a checkpoint was published")
	}
}

// A reader that gives more or less than the shape has is refused.
func TestAddPartWithWrongLength(t *testing.T) {
	for _, n := range []int{0, 4, 12} {
		w, err := CreateBundle(filepath.Join(t.TempDir(), "x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		p := WholePart("a", 1, []int64{2}, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(make([]byte, n))), nil })
		if err := w.AddPart(p); err == nil {
			t.Errorf("%d bytes for 8 were taken", n)
		}
		if err := w.Finish(); err == nil {
			t.Errorf("%d bytes for 8 were published", n)
		}
	}
}

// orderedParts is a PartList that knows its order.
type orderedParts struct {
	PartList
	byName []int32
}

func (p orderedParts) ByName() []int32 { return p.byName }

// TestForeignPart has a tensor of a type that TensorFlow lacks: it is listed by the
// type's name and copied as bytes, and no slice of it is cut, and no bundle holds it.
func TestForeignPart(t *testing.T) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader([]byte{1, 2})), nil }
	foreign := Part{Name: "b", Full: []int64{4}, Shape: []int64{4}, Slice: FullSlice(1), Open: open, Foreign: "F4", Bytes: 2}
	list := ListOf([]Part{foreign, WholePart("a", tfpb.DataType_DT_INT8, []int64{2}, open)})
	r, err := NewPartListReader(orderedParts{list, []int32{1, 0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := r.Info("b")
	if err != nil || info.TypeName() != "F4" || foreign.TypeName() != "F4" {
		t.Errorf("Info = %+v, %v", info, err)
	}
	if _, err := r.LookupSlice("b", FullSlice(1)); !errors.Is(err, ErrType) {
		t.Errorf("a slice of it: %v", err)
	}
	w, err := CreateBundle(filepath.Join(t.TempDir(), "m"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.AddPart(foreign); !errors.Is(err, ErrType) {
		t.Errorf("in a bundle: %v", err)
	}
}

// TestPartsOfAnyReader has readers that this package does not know, such as those that show
// other names: their parts are the tensors, whole.
func TestPartsOfAnyReader(t *testing.T) {
	damaged := 0
	for _, set := range []string{"partitioned", "strings", "dtypes", "scalars_empty", "damaged/entry_size_wrong"} {
		indexes, err := filepath.Glob(filepath.Join(fixtures, v2Set, set, "*.index"))
		if err != nil || len(indexes) == 0 {
			t.Fatalf("%s: %q, %v", set, indexes, err)
		}
		r := openBundle(t, strings.TrimSuffix(indexes[0], layout.IndexSuffix), nil)
		parts, lost, err := IntactParts(struct{ Reader }{r})
		if err != nil || len(parts) == 0 {
			t.Fatalf("%s: %d parts, %v", set, len(parts), err)
		}
		damaged += len(lost)
		for _, p := range parts {
			got, err := p.Load()
			want, wantErr := r.Lookup(p.Name)
			if err != nil || wantErr != nil || !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("%s: %q is %v, %v; want %v, %v", set, p.Name, got, err, want, wantErr)
			}
		}
		all := 0
		for range r.Tensors() {
			all++
		}
		if all != len(parts)+len(lost) {
			t.Errorf("%s: %d parts, %d damaged, of %d tensors", set, len(parts), len(lost), all)
		}
	}
	if damaged == 0 {
		t.Error("no tensor is damaged")
	}
}

// A tensor's part has its elements, numbers by Open and strings by Strings.
func TestPartOfTensor(t *testing.T) {
	numbers, texts := Scalar(int32(7)), &Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{[]byte("a"), []byte("bc")}}
	p := numbers.Part("n")
	r, err := p.Open()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || p.Strings != nil || !bytes.Equal(data, numbers.Data) || p.Name != "n" || p.DType != tfpb.DataType_DT_INT32 || !p.IsWhole() {
		t.Errorf("numbers: %+v, %x, %v", p, data, err)
	}
	p = texts.Part("s")
	if all, err := p.Strings(); err != nil || p.Open != nil || len(all) != 2 || string(all[1]) != "bc" || len(p.Shape) != 1 {
		t.Errorf("strings: %+v, %q, %v", p, all, err)
	}
}
