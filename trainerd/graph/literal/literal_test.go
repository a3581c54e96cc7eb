package literal

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

// What is encoded reads as the values that were given.
func TestValues(t *testing.T) {
	shape := &tfpb.TensorShapeProto{Dim: []*tfpb.TensorShapeProto_Dim{{Size: 2}}}
	check(t, Float(0.5), nil, []float32{0.5})
	check(t, Floats(1, 2), []int64{2}, []float32{1, 2})
	check(t, Filled(3, shape), []int64{2}, []float32{3, 3})
	check(t, Bool(true), nil, []bool{true})
	check(t, Int32(-7), nil, []int32{-7})
	check(t, Int32s(-7), []int64{1}, []int32{-7})
	check(t, Int32s(-7, 8), []int64{2}, []int32{-7, 8})
	check(t, Int64(1<<40), nil, []int64{1 << 40})
	check(t, Int64s(), []int64{0}, []int64{})
	check(t, String("x"), nil, []string{"x"})
	check(t, Strings("x", ""), []int64{2}, []string{"x", ""})
}

func check[T ckptfmt.Element](t *testing.T, p *tfpb.TensorProto, shape []int64, want []T) {
	t.Helper()
	v, err := ckptfmt.TensorFromProto(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ckptfmt.Values[T](v)
	if err != nil {
		t.Fatal(err)
	}
	if len(shape)+len(v.Shape) > 0 && !cmp.Equal(shape, v.Shape) || len(got)+len(want) > 0 && !cmp.Equal(want, got) {
		t.Errorf("shape %v, values %v; want %v, %v", v.Shape, got, shape, want)
	}
}
