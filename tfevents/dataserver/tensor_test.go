package dataserver

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
)

// TestHistogramsOfTensorFlow1 become rows of left end, right end and count, as TensorBoard's data_compat makes them.
func TestHistogramsOfTensorFlow1(t *testing.T) {
	for name, c := range map[string]struct {
		histo *tfpb.HistogramProto
		want  string
	}{
		"buckets": {&tfpb.HistogramProto{Min: 1, Max: 7, BucketLimit: []float64{2, 4, 6, math.MaxFloat64}, Bucket: []float64{3, 0, 1, 2}},
			"[1 2 3] [2 4 0] [4 6 1] [6 7 2]"},
		"one":                    {&tfpb.HistogramProto{Min: -2, Max: 5, BucketLimit: []float64{math.MaxFloat64}, Bucket: []float64{9}}, "[-2 5 9]"},
		"none":                   {new(tfpb.HistogramProto), ""},
		"a limit without count":  {&tfpb.HistogramProto{BucketLimit: []float64{1, 2}, Bucket: []float64{1}}, "refused"},
		"a count without limits": {&tfpb.HistogramProto{Bucket: []float64{1}}, "refused"},
	} {
		tensor, ok := tensorOf(&tfpb.Summary_Value{Value: &tfpb.Summary_Value_Histo{Histo: c.histo}})
		got := "refused"
		if ok {
			got = rowsOf(t, tensor)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// rowsOf returns the rows of a tensor of doubles that has three columns.
func rowsOf(t *testing.T, x *tfpb.TensorProto) (rows string) {
	t.Helper()
	dims := x.GetTensorShape().GetDim()
	if x.GetDtype() != tfpb.DataType_DT_DOUBLE || len(dims) != 2 || dims[1].GetSize() != 3 || int64(len(x.GetTensorContent())) != dims[0].GetSize()*3*8 {
		t.Fatalf("a tensor of %v, shape %v, %d bytes", x.GetDtype(), dims, len(x.GetTensorContent()))
	}
	for b := x.GetTensorContent(); len(b) > 0; b = b[24:] {
		var row [3]float64
		for i := range row {
			row[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		if rows != "" {
			rows += " "
		}
		rows += fmt.Sprint(row)
	}
	return rows
}

// TestMetadataAlone counts as a tensor without elements: the plugin of hyperparameters writes nothing else.
func TestMetadataAlone(t *testing.T) {
	x, ok := tensorOf(new(tfpb.Summary_Value))
	if dims := x.GetTensorShape().GetDim(); !ok || x.GetDtype() != tfpb.DataType_DT_FLOAT || len(dims) != 1 || dims[0].GetSize() != 0 {
		t.Errorf("%v, %v", x, ok)
	}
}
