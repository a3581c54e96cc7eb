package ckptfmt

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/membound"
	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
)

// A V1 checkpoint whose list of tensors and whose data lie about each other is
// refused in little memory, tensor by tensor or as a whole.
func TestV1HostileTensors(t *testing.T) {
	const huge = 1 << 40
	extent := func(start, length int64) *tfpb.TensorSliceProto {
		return &tfpb.TensorSliceProto{Extent: []*tfpb.TensorSliceProto_Extent{{
			Start: start, HasLengthHack: &tfpb.TensorSliceProto_Extent_Length{Length: length},
		}}}
	}
	floats := func(n int) *tfpb.TensorProto {
		return &tfpb.TensorProto{Dtype: tfpb.DataType_DT_FLOAT, TensorShape: shapeProto([]int64{int64(n)}), FloatVal: make([]float32, n)}
	}
	for name, tt := range map[string]struct {
		shape []int64
		dtype tfpb.DataType
		slice *tfpb.TensorSliceProto
		key   TensorSlice
		data  *tfpb.TensorProto // nil for none
	}{
		"end of an extent overflows": {[]int64{4}, tfpb.DataType_DT_FLOAT, extent(1, 1<<63-1), TensorSlice{[]int64{1}, []int64{1<<63 - 1}}, floats(4)},
		"extent begins before":       {[]int64{4}, tfpb.DataType_DT_FLOAT, extent(-1, 4), TensorSlice{[]int64{-1}, []int64{4}}, floats(4)},
		"extent of negative length":  {[]int64{4}, tfpb.DataType_DT_FLOAT, extent(0, -7), TensorSlice{[]int64{0}, []int64{-7}}, floats(4)},
		"extent behind the tensor":   {[]int64{4}, tfpb.DataType_DT_FLOAT, extent(4, 1), TensorSlice{[]int64{4}, []int64{1}}, floats(1)},
		"too many extents": {[]int64{4}, tfpb.DataType_DT_FLOAT,
			&tfpb.TensorSliceProto{Extent: append(extent(0, 2).Extent, extent(0, 2).Extent...)}, TensorSlice{[]int64{0, 0}, []int64{2, 2}}, floats(4)},
		"size overflows":         {[]int64{huge, huge}, tfpb.DataType_DT_FLOAT, &tfpb.TensorSliceProto{}, FullSlice(2), floats(4)},
		"negative dimension":     {[]int64{-4}, tfpb.DataType_DT_FLOAT, &tfpb.TensorSliceProto{}, FullSlice(1), floats(4)},
		"larger than its data":   {[]int64{huge}, tfpb.DataType_DT_FLOAT, extent(0, huge), TensorSlice{[]int64{0}, []int64{huge}}, floats(4)},
		"no data":                {[]int64{4}, tfpb.DataType_DT_FLOAT, extent(0, 4), TensorSlice{[]int64{0}, []int64{4}}, nil},
		"data under another key": {[]int64{4}, tfpb.DataType_DT_FLOAT, extent(0, 4), TensorSlice{[]int64{0}, []int64{3}}, floats(4)},
		"type that is not held":  {[]int64{4}, tfpb.DataType_DT_RESOURCE, extent(0, 4), TensorSlice{[]int64{0}, []int64{4}}, floats(4)},
		"type that is none":      {[]int64{4}, tfpb.DataType(999), extent(0, 4), TensorSlice{[]int64{0}, []int64{4}}, floats(4)},
		"part of a tensor":       {[]int64{huge}, tfpb.DataType_DT_FLOAT, extent(0, 4), TensorSlice{[]int64{0}, []int64{4}}, floats(4)},
	} {
		t.Run(name, func(t *testing.T) {
			meta := tfproto.Marshal(&tfpb.SavedTensorSlices{Meta: &tfpb.SavedTensorSliceMeta{Tensor: []*tfpb.SavedSliceMeta{
				{Name: "x", Shape: shapeProto(tt.shape), Type: tt.dtype, Slice: []*tfpb.TensorSliceProto{tt.slice}},
			}}})
			data := tfproto.Marshal(&tfpb.SavedTensorSlices{Data: &tfpb.SavedSlice{Name: "x", Slice: tt.slice, Data: tt.data}})
			file := filepath.Join(t.TempDir(), "v1")
			writeTable(t, file, map[string][]byte{headerKey: meta, string(sliceKey("x", tt.key)): data})
			defer membound.Check(t, len(meta)+len(data), 64)()
			r, err := OpenV1(file)
			if err == nil {
				defer r.Close()
				_, err = r.Lookup("x")
			}
			var corrupt *CorruptError
			if err == nil || !errors.As(err, &corrupt) && !errors.Is(err, ErrSlices) {
				t.Errorf("error %v, want damage", err)
			}
		})
	}
}
