package rewrite

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/formats"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Tensors of a program, strings among them, are in every format what they were.
func TestFromTensors(t *testing.T) {
	words := &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{2}, Strings: [][]byte{[]byte("a"), []byte("b")}}
	step := ckptfmt.Scalar(int64(7))
	for _, c := range []struct {
		file  string
		names []string
	}{
		{"model.ckpt", []string{"step", "words"}}, {"model.safetensors", []string{"step"}}, {"model.npz", []string{"step"}},
		{"model.pt", []string{"step"}}, {"model.h5", []string{"step"}},
	} {
		tensors := []ckptfmt.NamedTensor{{Name: "step", Tensor: step}, {Name: "words", Tensor: words}}[:len(c.names)]
		s, err := FromTensors(tensors)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), c.file)
		if err := Write(t.Context(), s, name, nil); err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		f, err := formats.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tensors {
			got, err := r.Lookup(want.Name)
			if err != nil || got.DType != want.Tensor.DType || !slices.Equal(got.Data, want.Tensor.Data) ||
				!slices.EqualFunc(got.Strings, want.Tensor.Strings, func(a, b []byte) bool { return string(a) == string(b) }) {
				t.Errorf("%s: %s is %v, %v", c.file, want.Name, got, err)
			}
		}
		r.Close()
	}
}

func TestFromTensorsThatCannotBeWritten(t *testing.T) {
	one := ckptfmt.Scalar(int64(7))
	if _, err := FromTensors([]ckptfmt.NamedTensor{{Name: "x", Tensor: one}, {Name: "x", Tensor: one}}); !errors.Is(err, ckptfmt.ErrExists) {
		t.Errorf("a name twice: %v", err)
	}
	short := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{2}, Data: make([]byte, 4)}
	if _, err := FromTensors([]ckptfmt.NamedTensor{{Name: "x", Tensor: short}}); err == nil {
		t.Error("a tensor that is too short is taken")
	}
}
