package inspect

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
)

func diffOf(t *testing.T, a, b string) []Difference {
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
	var list []Difference
	for d, err := range Diff(t.Context(), ra, rb, nil) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, d)
	}
	return list
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, tensors map[string]*ckptfmt.Tensor) string {
		prefix := filepath.Join(dir, name)
		w, err := ckptfmt.CreateBundle(prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for n, v := range tensors {
			if err := w.Add(n, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		return prefix
	}
	vec := func(v ...float64) *ckptfmt.Tensor {
		t, err := ckptfmt.FromValues([]int64{int64(len(v))}, v)
		if err != nil {
			panic(err)
		}
		return t
	}
	complexes := func(v ...complex64) *ckptfmt.Tensor {
		t, err := ckptfmt.FromValues([]int64{int64(len(v))}, v)
		if err != nil {
			panic(err)
		}
		return t
	}
	nan := math.NaN()
	long := make([]float64, 3*pieceSize/8+5) // more than one piece, and a part of one
	longer := slices.Clone(long)
	longer[0], longer[len(long)-1] = 0.5, -3
	a := write("a", map[string]*ckptfmt.Tensor{
		"same": vec(1, nan, 0), "only a": vec(1), "value": vec(1, 2, 4), "shape": vec(1), "type": vec(1), "text": ckptfmt.Scalar("x"),
		"step": ckptfmt.Scalar(int64(1 << 60)), "nan": vec(nan), "complex": complexes(1+2i, 3), "long": vec(long...),
	})
	b := write("b", map[string]*ckptfmt.Tensor{
		"same": vec(1, nan, math.Copysign(0, -1)), "only b": vec(1), "value": vec(1, 3, 5), "shape": vec(1, 2), "type": ckptfmt.Scalar("x"), "text": ckptfmt.Scalar("y"),
		"step": ckptfmt.Scalar(int64(1<<60 + 1)), "nan": vec(1), "complex": complexes(5+4i, 3), "long": vec(longer...),
	})
	var got []string
	for _, d := range diffOf(t, a, b) {
		got = append(got, fmt.Sprint(d.Name, " ", d.A != nil, d.B != nil, " ", d.Elements, " ", d.MaxAbs, " ", d.MaxRel > 0))
	}
	want := []string{
		"complex true true 1 4 true", "long true true 2 3 true", "nan true true 1 +Inf true", "only a true false 0 0 false", "only b false true 0 0 false", "shape true true 0 0 false",
		"step true true 1 1 true", "text true true 1 0 false", "type true true 0 0 false", "value true true 2 1 true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Complex numbers may differ in one part alone: that is the one which is shown.
func TestDiffOfComplexNumbers(t *testing.T) {
	d := Difference{}
	x, err := ckptfmt.FromValues([]int64{2}, []complex64{1 + 2i, 3})
	if err != nil {
		t.Fatal(err)
	}
	y, err := ckptfmt.FromValues([]int64{2}, []complex64{1 + 2i, 3.5 + 4i})
	if err != nil {
		t.Fatal(err)
	}
	newNumberDiff(x.DType).addTo(&d, x.Data, y.Data, 0)
	if d.Elements != 1 || d.MaxAbs != 4 || d.MaxAt != 1 || d.MaxA != 0 || d.MaxB != 4 {
		t.Errorf("got %+v", d)
	}
}
