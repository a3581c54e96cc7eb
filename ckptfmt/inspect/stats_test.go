package inspect

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
)

func TestStats(t *testing.T) {
	v, err := ckptfmt.FromValues([]int64{6}, []float32{3, -4, 0, float32(math.NaN()), float32(math.Inf(1)), 0})
	if err != nil {
		t.Fatal(err)
	}
	got, err := StatsOf(v)
	want := Stats{Count: 6, Zeros: 2, NaN: 1, Inf: 1, Min: -4, Max: 3, Mean: -0.25, Norm: 5}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	big, err := ckptfmt.FromValues([]int64{2}, []float64{math.MaxFloat64, math.MaxFloat64})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := StatsOf(big); err != nil || got.Mean != math.MaxFloat64 || math.IsInf(got.Max, 0) {
		t.Errorf("large numbers: %+v, %v", got, err)
	}
	if _, err := StatsOf(ckptfmt.Scalar("text")); !errors.Is(err, ckptfmt.ErrType) {
		t.Errorf("text: %v", err)
	}
	empty, err := StatsOf(&ckptfmt.Tensor{DType: tfpb.DataType_DT_FLOAT, Shape: []int64{0}})
	if err != nil || empty.Count != 0 || !math.IsNaN(empty.Mean) || empty.Norm != 0 {
		t.Errorf("empty: %+v, %v", empty, err)
	}
}

// Integers of 64 bits are shown as they are, where a float64 would round them.
func TestWholeNumbersAreExact(t *testing.T) {
	const most = math.MaxInt64
	tensor := func(values any) *ckptfmt.Tensor {
		t.Helper()
		var x *ckptfmt.Tensor
		var err error
		switch v := values.(type) {
		case []int64:
			x, err = ckptfmt.FromValues([]int64{int64(len(v))}, v)
		case []uint64:
			x, err = ckptfmt.FromValues([]int64{int64(len(v))}, v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, tc := range []struct {
		values any
		want   [2]string
	}{
		{[]int64{1<<53 + 1, 1 << 53, most, most - 1}, [2]string{"9007199254740992", "9223372036854775807"}},
		{[]int64{-3, math.MinInt64 + 1}, [2]string{"-9223372036854775807", "-3"}},
		{[]uint64{math.MaxUint64, 7}, [2]string{"7", "18446744073709551615"}},
		{[]int64{}, [2]string{}},
	} {
		s, err := StatsOf(tensor(tc.values))
		if got := [2]string{s.Least, s.Most}; err != nil || got != tc.want {
			t.Errorf("%v: %q, %v, want %q", tc.values, got, err, tc.want)
		}
	}
	d := Difference{}
	x, y := tensor([]int64{0, most - 1}), tensor([]int64{0, most})
	newNumberDiff(x.DType).addTo(&d, x.Data, y.Data, 0)
	if d.DigitsA != "9223372036854775806" || d.DigitsB != "9223372036854775807" {
		t.Errorf("the difference is %+v", d)
	}
}

// The values are those of the ml_dtypes library.
func TestSmallFloats(t *testing.T) {
	for _, tc := range []struct {
		d    tfpb.DataType
		bits []byte
		want float64
	}{
		{tfpb.DataType_DT_HALF, []byte{0x00, 0x3c}, 1},
		{tfpb.DataType_DT_HALF, []byte{0x01, 0x00}, 0x1p-24},
		{tfpb.DataType_DT_HALF, []byte{0xff, 0xfb}, -65504},
		{tfpb.DataType_DT_HALF, []byte{0x00, 0xfc}, math.Inf(-1)},
		{tfpb.DataType_DT_HALF, []byte{0x01, 0x7c}, math.NaN()},
		{tfpb.DataType_DT_BFLOAT16, []byte{0xc0, 0xbf}, -1.5},
		{tfpb.DataType_DT_FLOAT8_E5M2, []byte{0x7b}, 57344},
		{tfpb.DataType_DT_FLOAT8_E5M2, []byte{0x7c}, math.Inf(1)},
		{tfpb.DataType_DT_FLOAT8_E4M3FN, []byte{0x7e}, 448},
		{tfpb.DataType_DT_FLOAT8_E4M3FN, []byte{0x7f}, math.NaN()},
		{tfpb.DataType_DT_FLOAT8_E4M3FNUZ, []byte{0x7f}, 240},
		{tfpb.DataType_DT_FLOAT8_E4M3FNUZ, []byte{0x80}, math.NaN()},
		{tfpb.DataType_DT_FLOAT8_E4M3B11FNUZ, []byte{0x7f}, 30},
		{tfpb.DataType_DT_FLOAT8_E5M2FNUZ, []byte{0x7f}, 57344},
		{tfpb.DataType_DT_FLOAT8_E5M2FNUZ, []byte{0x01}, 0x1p-17},
		{tfpb.DataType_DT_FLOAT4_E2M1FN, []byte{0x01}, 0.5},
		{tfpb.DataType_DT_FLOAT4_E2M1FN, []byte{0x07}, 6},
		{tfpb.DataType_DT_FLOAT4_E2M1FN, []byte{0x0b}, -1.5},
		{tfpb.DataType_DT_INT4, []byte{0xf8}, -8},
		{tfpb.DataType_DT_UINT64, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 0x1p63},
	} {
		n, err := NumbersOf(&ckptfmt.Tensor{DType: tc.d, Data: tc.bits})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.At(0); got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
			t.Errorf("%v %x = %v, want %v", tc.d, tc.bits, got, tc.want)
		}
	}
}

// A tensor has the statistics in pieces that it has as a whole.
func TestStatsFrom(t *testing.T) {
	values := make([]float32, 3*pieceSize/4+5)
	for i := range values {
		values[i] = float32(i%1000) - 300
	}
	values[7] = float32(math.NaN())
	values[pieceSize/4] = float32(math.Inf(-1))
	x, err := ckptfmt.FromValues([]int64{int64(len(values))}, values)
	if err != nil {
		t.Fatal(err)
	}
	want, err := StatsOf(x)
	if err != nil {
		t.Fatal(err)
	}
	got, err := StatsFrom(bytes.NewReader(x.Data), x.DType)
	if err != nil || got != want || got.NaN != 1 || got.Inf != 1 || got.Min != -300 || got.Max != 699 {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := StatsFrom(bytes.NewReader(x.Data[:5]), x.DType); err == nil {
		t.Error("a piece of a number was taken")
	}
	if _, err := StatsFrom(bytes.NewReader(nil), 7); !errors.Is(err, ckptfmt.ErrType) {
		t.Errorf("strings: %v", err)
	}
	if got, err := StatsFrom(bytes.NewReader(nil), x.DType); err != nil || !math.IsNaN(got.Min) || got.Norm != 0 {
		t.Errorf("nothing: %+v, %v", got, err)
	}
}

func TestHistogram(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		low, high float64
		want      []int64
	}{
		{[]float64{0, 1, 2, 3, 4}, 0, 4, []int64{1, 1, 1, 2}},
		{[]float64{5, 5}, 5, 5, []int64{2, 0, 0, 0}},
		{[]float64{math.NaN(), math.Inf(1), -1, 9}, 0, 4, []int64{0, 0, 0, 0}},
		{[]float64{-math.MaxFloat64, 0, math.MaxFloat64}, -math.MaxFloat64, math.MaxFloat64, []int64{1, 0, 1, 1}},
		{nil, 0, 1, []int64{0, 0, 0, 0}},
	} {
		x, err := ckptfmt.FromValues([]int64{int64(len(c.values))}, c.values)
		if err != nil {
			t.Fatal(err)
		}
		got, err := HistogramFrom(bytes.NewReader(x.Data), x.DType, c.low, c.high, 4)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v from %v to %v: %v, %v; want %v", c.values, c.low, c.high, got, err, c.want)
		}
	}
}
