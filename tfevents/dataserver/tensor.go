package dataserver

import (
	"encoding/binary"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
)

// tensorOf returns a value of a series of tensors: as it is, or, for a histogram of TensorFlow 1,
// as rows of left end, right end and count. A value with metadata alone, such as hyperparameters,
// counts as a tensor without elements.
func tensorOf(v *tfpb.Summary_Value) (*tfpb.TensorProto, bool) {
	switch x := v.GetValue().(type) {
	case *tfpb.Summary_Value_Tensor:
		return x.Tensor, true
	case *tfpb.Summary_Value_Histo:
		return histogramTensor(x.Histo)
	case nil:
		return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shapeOf(0)}, true
	}
	return nil, false
}

func shapeOf(sizes ...int64) *tfpb.TensorShapeProto {
	s := new(tfpb.TensorShapeProto)
	for _, n := range sizes {
		s.Dim = append(s.Dim, &tfpb.TensorShapeProto_Dim{Size: n})
	}
	return s
}

// histogramTensor keeps the empty buckets too. The outer ones end at the least
// and the largest value: the limits of TensorFlow 1 reach as far as doubles do.
func histogramTensor(h *tfpb.HistogramProto) (*tfpb.TensorProto, bool) {
	limits, counts := h.GetBucketLimit(), h.GetBucket()
	if len(limits) != len(counts) {
		return nil, false
	}
	content := make([]byte, 0, 3*8*len(limits))
	for i := range limits {
		left, right := h.GetMin(), limits[i]
		if i > 0 {
			left = limits[i-1]
		}
		if i == len(limits)-1 {
			right = h.GetMax()
		}
		for _, f := range []float64{left, right, counts[i]} {
			content = binary.LittleEndian.AppendUint64(content, math.Float64bits(f))
		}
	}
	return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_DOUBLE, TensorShape: shapeOf(int64(len(limits)), 3), TensorContent: content}, true
}
