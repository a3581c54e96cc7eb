package rewrite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// An error about types names the first tensors and says how many there are, and nothing is
// written.
func TestManyTensorsOfATypeThatAFormatLacks(t *testing.T) {
	number := tensor(t, "number", []int64{2}, float32(1), 2)
	complexes := []ckptfmt.NamedTensor{number}
	words := []ckptfmt.NamedTensor{number}
	bfloats := []ckptfmt.NamedTensor{number}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		complexes = append(complexes, tensor(t, name, []int64{1}, complex128(1)))
		words = append(words, ckptfmt.NamedTensor{Name: name, Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_STRING, Shape: []int64{1}, Strings: [][]byte{[]byte("x")}}})
		bfloats = append(bfloats, ckptfmt.NamedTensor{Name: name, Tensor: &ckptfmt.Tensor{DType: tfpb.DataType_DT_BFLOAT16, Shape: []int64{1}, Data: []byte{0, 0}}})
	}
	const rest = `, nor 5 more: "b", "c", "d", "e", ...`
	for _, c := range []struct {
		to, first string
		tensors   []ckptfmt.NamedTensor
		o         *Options
	}{
		{"x.safetensors", `"a" of complex128`, complexes, nil},
		{"x.pt", `"a" of string`, words, nil},
		{"x.h5", `"a"`, words, nil},
		{"x.weights.h5", `"a"`, words, nil},
		{"x", `"a" of bfloat16`, bfloats, &Options{V1: true}},
	} {
		to := filepath.Join(t.TempDir(), c.to)
		err := Write(t.Context(), open(t, save(t, c.tensors...)), to, c.o)
		if !errors.Is(err, ckptfmt.ErrType) || !strings.Contains(err.Error(), c.first) || !strings.HasSuffix(err.Error(), rest) {
			t.Errorf("%s: got %v, want one about %s, that ends in %s", c.to, err, c.first, rest)
		}
		if list, _ := os.ReadDir(filepath.Dir(to)); len(list) > 0 {
			t.Errorf("%s: %v is left", c.to, list)
		}
		one := append(c.tensors[:1:1], c.tensors[1])
		if err := Write(t.Context(), open(t, save(t, one...)), to, c.o); !errors.Is(err, ckptfmt.ErrType) || strings.Contains(err.Error(), "more") {
			t.Errorf("%s, one tensor: got %v", c.to, err)
		}
	}
}

// A tensor in slices is named once.
func TestSlicesOfATypeThatAFormatLacks(t *testing.T) {
	slice := func(name string) ckptfmt.Part { return ckptfmt.Part{Name: name, Foreign: "F4"} }
	err := refused([]ckptfmt.Part{slice("a"), slice("a"), slice("b"), slice("b"), slice("a")}, ckptfmt.CheckBundle)
	if err == nil || !strings.HasSuffix(err.Error(), `, nor 1 more: "b"`) {
		t.Errorf("got %v", err)
	}
}

// What is damaged is said first, since leaving out the types does not help.
func TestDamageBeforeTypes(t *testing.T) {
	damage := &ckptfmt.CorruptError{Name: "x", Part: "tensor", Err: errors.New("gone")}
	parts := []ckptfmt.Part{{Name: "a", Foreign: "F4"}, {Name: "b", Err: damage}, {Name: "c", Foreign: "F4"}}
	if err := refused(parts, ckptfmt.CheckBundle); err != nil {
		t.Errorf("with damage: %v", err)
	}
	if err := refused(parts[:1], ckptfmt.CheckBundle); !errors.Is(err, ckptfmt.ErrType) {
		t.Errorf("a type that TensorFlow lacks: %v", err)
	}
}

// What is computed of several files is of their kind: it knows the variables of optimizers and the
// places of a model's.
func TestMeanOfModels(t *testing.T) {
	model := filepath.Join(fixtures, "keras", "model.keras")
	want, err := open(t, model).OptimizerNames()
	if err != nil || len(want) == 0 {
		t.Fatalf("optimizer of the fixture: %v, %v", want, err)
	}
	mean, err := Average([]*Source{open(t, model), open(t, model)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := mean.OptimizerNames(); err != nil || !slices.Equal(got, want) {
		t.Errorf("optimizer of the mean: %v, %v; want %v", got, err, want)
	}
	to := filepath.Join(t.TempDir(), "mean.keras")
	if err := Write(t.Context(), mean, to, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := partNames(t, to), partNames(t, model); got != want {
		t.Errorf("the mean has %s; want %s", got, want)
	}
}
