package decode

import (
	"math"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/internal/eventstest"
)

func TestNumbers(t *testing.T) {
	double, float := tfpb.DataType_DT_DOUBLE, tfpb.DataType_DT_FLOAT
	half := []byte{0, 0, 0, 0x3f} // 0.5 as float32
	for _, tc := range []struct {
		name   string
		tensor *tfpb.TensorProto
		want   []float64
		ok     bool
	}{
		{"content", &tfpb.TensorProto{Dtype: float, TensorShape: eventstest.Shape(2), TensorContent: slices.Concat(half, half)}, []float64{0.5, 0.5}, true},
		{"doubles", &tfpb.TensorProto{Dtype: double, TensorShape: eventstest.Shape(1), TensorContent: []byte{0, 0, 0, 0, 0, 0, 0xe0, 0x3f}}, []float64{0.5}, true},
		{"list", &tfpb.TensorProto{Dtype: double, TensorShape: eventstest.Shape(1, 2), DoubleVal: []float64{1, 2}}, []float64{1, 2}, true},
		{"last one repeats", &tfpb.TensorProto{Dtype: float, TensorShape: eventstest.Shape(2, 2), FloatVal: []float32{1, 2}}, []float64{1, 2, 2, 2}, true},
		{"empty", &tfpb.TensorProto{Dtype: double, TensorShape: eventstest.Shape(0, 3)}, nil, true},
		{"none listed", &tfpb.TensorProto{Dtype: double, TensorShape: eventstest.Shape(3)}, nil, false},
		{"too many", &tfpb.TensorProto{Dtype: double, TensorShape: eventstest.Shape(1), DoubleVal: []float64{1, 2}}, nil, false},
		{"short content", &tfpb.TensorProto{Dtype: float, TensorShape: eventstest.Shape(2), TensorContent: half}, nil, false},
		{"huge claim", &tfpb.TensorProto{Dtype: float, TensorShape: eventstest.Shape(math.MaxInt32, 3), FloatVal: []float32{1}}, nil, false},
		{"overflow", &tfpb.TensorProto{Dtype: double, TensorShape: eventstest.Shape(math.MaxInt64), TensorContent: half}, nil, false},
		{"integers", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_INT32, TensorShape: eventstest.Shape(1), IntVal: []int32{-1}}, []float64{-1}, true},
		{"bytes", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_UINT8, TensorShape: eventstest.Shape(1, 3), TensorContent: []byte{0, 1, 255}}, []float64{0, 1, 255}, true},
		{"bools", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_BOOL, TensorShape: eventstest.Shape(2), BoolVal: []bool{true, false}}, []float64{1, 0}, true},
		{"halves", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_HALF, TensorShape: eventstest.Shape(2), HalfVal: []int32{0x3c00}}, []float64{1, 1}, true},
		{"strings", &tfpb.TensorProto{Dtype: tfpb.DataType_DT_STRING, TensorShape: eventstest.Shape(1), StringVal: [][]byte{nil}}, nil, false},
		{"none", nil, nil, false},
	} {
		got, ok := Numbers(tc.tensor)
		if ok != tc.ok || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v; want %v, %v", tc.name, got, ok, tc.want, tc.ok)
		}
	}
}
