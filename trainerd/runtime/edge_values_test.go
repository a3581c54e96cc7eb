package runtime_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Numbers at the edges: what TensorFlow makes of NaN, of infinity, of -0 and of
// the poles of functions.
func TestEdgeValues(t *testing.T) {
	nan, inf, zero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	double := map[string]*tfpb.AttrValue{"T": typeAttr(tfpb.DataType_DT_DOUBLE)}
	in32 := map[string]*tfpb.AttrValue{"T": typeAttr(tfpb.DataType_DT_DOUBLE), "Tindices": typeAttr(tfpb.DataType_DT_INT32)}
	whole := ckptfmt.Scalar(int32(0))
	segment := func(v ...float64) []*ckptfmt.Tensor {
		return []*ckptfmt.Tensor{vector(v...), vector(make([]int32, len(v))...)}
	}
	for _, c := range []struct {
		op   string
		attr map[string]*tfpb.AttrValue
		in   []*ckptfmt.Tensor
		want []float64
	}{
		{"ReluGrad", double, []*ckptfmt.Tensor{vector(nan, inf, -1, 1, nan, 3, -inf, -2, 5), vector(-1., 0, -1, -1, 1, 1, nan, 2, -3)},
			[]float64{nan, nan, zero, 0, nan, 3, nan, -2, 0}},
		{"Relu6Grad", double, []*ckptfmt.Tensor{vector(nan, inf, -1, 1, 2), vector(-1., -1, -1, 9, 3)}, []float64{nan, nan, zero, 0, 2}},
		{"FakeQuantWithMinMaxArgsGradient", nil, []*ckptfmt.Tensor{vector[float32](1, -2, float32(nan), -3), vector[float32](0, 9, -9, -9)}, []float64{1, zero, nan, zero}},
		{"Sign", double, []*ckptfmt.Tensor{vector(zero, 0, nan, -inf, 1e-300)}, []float64{0, 0, nan, -1, 1}},
		{"ClipByValue", double, []*ckptfmt.Tensor{vector(nan, inf, -inf, 1, 5), ckptfmt.Scalar(2.0), ckptfmt.Scalar(1.0)}, []float64{nan, 2, 2, 2, 2}},
		{"ClipByValue", double, []*ckptfmt.Tensor{vector(5, -5.), vector(nan, -1), vector(2, nan)}, []float64{2, -1}},
		{"Lgamma", double, []*ckptfmt.Tensor{vector(-inf, inf, 0)}, []float64{inf, inf, inf}},
		{"ReciprocalGrad", double, []*ckptfmt.Tensor{vector(inf, nan, 2), vector(0., 0, 3)}, []float64{0, 0, -12}},
		{"RsqrtGrad", double, []*ckptfmt.Tensor{vector(inf, nan, 2), vector(0., 0, 3)}, []float64{0, 0, -12}},
		{"SqrtGrad", double, []*ckptfmt.Tensor{vector(0., nan, 2), vector(0., 0, 3)}, []float64{0, 0, 0.75}},
		{"ArgMax", double, []*ckptfmt.Tensor{vector(nan, 1, 0), whole}, []float64{1}},
		{"ArgMin", double, []*ckptfmt.Tensor{vector(nan, 1, 0), whole}, []float64{2}},
		{"ArgMin", double, []*ckptfmt.Tensor{vector(nan, nan), whole}, []float64{0}},
		{"ArgMax", double, []*ckptfmt.Tensor{vector(nan, -inf), whole}, []float64{0}},
		{"ArgMin", double, []*ckptfmt.Tensor{vector(nan, -inf), whole}, []float64{1}},
		{"ArgMax", double, []*ckptfmt.Tensor{vector(nan, 5, 5, nan), whole}, []float64{1}},
		{"SegmentMax", in32, segment(nan, 1), []float64{1}},
		{"SegmentMax", in32, segment(1, nan), []float64{nan}},
		{"SegmentMax", in32, segment(2, nan, 1), []float64{1}},
		{"SegmentMin", in32, segment(1, nan, 2), []float64{2}},
		{"SegmentMin", in32, segment(-inf, nan), []float64{nan}},
		{"Digamma", double, []*ckptfmt.Tensor{vector[float64](0, zero, -1, -2, -inf, inf)}, []float64{nan, nan, nan, nan, nan, inf}},
		{"Igamma", double, []*ckptfmt.Tensor{vector(1, 1, inf, inf, -1, inf, 0), vector(0, inf, 1, inf, 1, 0, inf)}, []float64{0, 1, 0, 0, nan, 0, nan}},
		{"Igammac", double, []*ckptfmt.Tensor{vector(1, 1, inf, inf, -1, inf, 0), vector(0, inf, 1, inf, 1, 0, inf)}, []float64{1, 0, 1, 0, nan, 1, nan}},
		{"Zeta", double, []*ckptfmt.Tensor{vector(1, 1, inf, inf, nan, 2, 3, inf), vector(0, inf, 1, inf, 1, -1, -inf, 0)}, []float64{inf, inf, 1, 0, nan, inf, nan, inf}},
		{"Polygamma", double, []*ckptfmt.Tensor{vector(1, 1, inf, inf, -1, 2, 3, 0, inf), vector(0, inf, 1, inf, 1, -1, -inf, 0, 0)},
			[]float64{inf, 0, inf, nan, nan, nan, inf, nan, inf}},
	} {
		got := runEdge(t, c.op, c.attr, c.in)
		if !slices.EqualFunc(got, c.want, sameNumber) {
			t.Errorf("%s: %v, want %v", c.op, got, c.want)
		}
	}
}

// runEdge runs one op on constants and returns its first output as doubles.
func runEdge(t *testing.T, op string, attr map[string]*tfpb.AttrValue, in []*ckptfmt.Tensor) []float64 {
	t.Helper()
	var nodes []*tfpb.NodeDef
	node := &tfpb.NodeDef{Name: "out", Op: op, Attr: attr}
	for i, v := range in {
		input := &tfpb.NodeDef{Name: fmt.Sprint("in", i), Op: "Const", Attr: map[string]*tfpb.AttrValue{
			"dtype": typeAttr(v.DType), "value": {Value: &tfpb.AttrValue_Tensor{Tensor: v.Proto()}}}}
		nodes, node.Input = append(nodes, input), append(node.Input, input.GetName())
	}
	got, err := newSession(t, append(nodes, node)...).Run(context.Background(), nil, []string{"out"}, nil)
	if err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	if got[0].DType == tfpb.DataType_DT_FLOAT {
		list, err := ckptfmt.Values[float32](got[0])
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		wide := make([]float64, len(list))
		for i, v := range list {
			wide[i] = float64(v)
		}
		return wide
	}
	if got[0].DType != tfpb.DataType_DT_INT64 {
		list, err := ckptfmt.Values[float64](got[0])
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		return list
	}
	n, err := session.ScalarInt(got[0])
	if err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	return []float64{float64(n)}
}

// sameNumber tells 0 from -0, and takes all NaN for one.
func sameNumber(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || a == b && math.Signbit(a) == math.Signbit(b)
}

// Channels of an image that differ by less than a normal number have no hue: TensorFlow takes the
// differences for 0.
func TestSaturationOfAlmostGrey(t *testing.T) {
	tiny := &ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{1, 2, 3}, Data: make([]byte, 24)}
	tiny.Data[1], tiny.Data[5], tiny.Data[17], tiny.Data[21] = 2, 1, 0x40, 0x20 // one channel of each pixel is 0
	float := map[string]*tfpb.AttrValue{"T": typeAttr(tfpb.DataType_DT_FLOAT)}
	for i, v := range runEdge(t, "AdjustSaturation", float, []*ckptfmt.Tensor{tiny, ckptfmt.Scalar[float32](0.5)}) {
		if !(v >= 0 && v < 0x1p-126) {
			t.Errorf("channel %d is %v", i, v)
		}
	}
}
