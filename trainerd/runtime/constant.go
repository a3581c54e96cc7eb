package runtime

import (
	"fmt"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
)

// tensorFromProto decodes the value of a Const node or a tensor attribute. A
// value list shorter than the shape repeats its last element, as TensorFlow
// reads it; an absent list is zeros.
func tensorFromProto(p *tfpb.TensorProto, limit int) (*tensor, error) {
	shape, err := shapeFromProto(p.GetTensorShape())
	if err != nil {
		return nil, err
	}
	n, ok := checkedCount(shape)
	if !ok {
		return nil, fmt.Errorf("shape %s is not a tensor's shape", shapeString(shape))
	}
	dt := baseType(p.GetDtype())
	if dt == tfpb.DataType_DT_STRING {
		return stringsFromProto(p, shape, n, limit)
	}
	size := elemSize(dt)
	if size == 0 {
		return nil, fmt.Errorf("constants of type %s are not supported", typeName(dt))
	}
	if n > limit/size {
		return nil, fmt.Errorf("constant of %s%s exceeds the limit of %d bytes", typeName(dt), shapeString(shape), limit)
	}
	if c := p.GetTensorContent(); len(c) > 0 {
		return fromContent(c, dt, shape, n)
	}
	t := newTensor(dt, shape)
	return t, fillFromLists(t, p)
}

func fromContent(c []byte, dt tfpb.DataType, shape []int, n int) (*tensor, error) {
	if len(c) != n*elemSize(dt) {
		return nil, fmt.Errorf("%s%s needs %d bytes of content, not %d", typeName(dt), shapeString(shape), n*elemSize(dt), len(c))
	}
	t := newTensor(dt, shape)
	copy(t.data, c)
	if bigEndian {
		swapBytes(t.data, wordSize(dt))
	}
	return t, nil
}

func stringsFromProto(p *tfpb.TensorProto, shape []int, n, limit int) (*tensor, error) {
	if n > limit/24 {
		return nil, fmt.Errorf("constant of string%s exceeds the limit of %d bytes", shapeString(shape), limit)
	}
	list := p.GetStringVal()
	if len(list) > n {
		return nil, fmt.Errorf("string%s has %d values", shapeString(shape), len(list))
	}
	t := newTensor(tfpb.DataType_DT_STRING, shape)
	copy(t.strs, list)
	for i := len(list); i < n && len(list) > 0; i++ {
		t.strs[i] = list[len(list)-1]
	}
	return t, nil
}

// fillFromLists decodes the typed value list of p.
func fillFromLists(t *tensor, p *tfpb.TensorProto) error {
	switch t.dtype {
	case tfpb.DataType_DT_FLOAT:
		return spread(elems[float32](t), p.GetFloatVal(), func(v float32) float32 { return v })
	case tfpb.DataType_DT_DOUBLE:
		return spread(elems[float64](t), p.GetDoubleVal(), func(v float64) float64 { return v })
	case tfpb.DataType_DT_INT32:
		return spread(elems[int32](t), p.GetIntVal(), func(v int32) int32 { return v })
	case tfpb.DataType_DT_INT64:
		return spread(elems[int64](t), p.GetInt64Val(), func(v int64) int64 { return v })
	case tfpb.DataType_DT_BOOL:
		return spread(elems[bool](t), p.GetBoolVal(), func(v bool) bool { return v })
	case tfpb.DataType_DT_UINT8:
		return spread(elems[uint8](t), p.GetIntVal(), func(v int32) uint8 { return uint8(v) })
	case tfpb.DataType_DT_INT8:
		return spread(elems[int8](t), p.GetIntVal(), func(v int32) int8 { return int8(v) })
	case tfpb.DataType_DT_UINT16:
		return spread(elems[uint16](t), p.GetIntVal(), func(v int32) uint16 { return uint16(v) })
	case tfpb.DataType_DT_INT16:
		return spread(elems[int16](t), p.GetIntVal(), func(v int32) int16 { return int16(v) })
	case tHalf, tBfloat16:
		return spread(elems[uint16](t), p.GetHalfVal(), func(v int32) uint16 { return uint16(v) })
	case tComplex64:
		return spread(elems[complex64](t), pairs(p.GetScomplexVal()), func(v [2]float32) complex64 { return complex(v[0], v[1]) })
	case tComplex128:
		return spread(elems[complex128](t), pairs(p.GetDcomplexVal()), func(v [2]float64) complex128 { return complex(v[0], v[1]) })
	case tfpb.DataType_DT_UINT32:
		return spread(elems[uint32](t), p.GetUint32Val(), func(v uint32) uint32 { return v })
	case tfpb.DataType_DT_UINT64:
		return spread(elems[uint64](t), p.GetUint64Val(), func(v uint64) uint64 { return v })
	}
	return fmt.Errorf("constants of type %s are not supported", typeName(t.dtype))
}

// pairs groups the parts of complex numbers.
func pairs[T any](v []T) [][2]T {
	out := make([][2]T, len(v)/2)
	for i := range out {
		out[i] = [2]T(v[2*i:])
	}
	return out
}

func spread[S, D any](dst []D, src []S, conv func(S) D) error {
	if len(src) > len(dst) {
		return fmt.Errorf("%d values for %d elements", len(src), len(dst))
	}
	var last D
	for i := range dst {
		if i < len(src) {
			last = conv(src[i])
		}
		dst[i] = last
	}
	return nil
}

// shapeFromProto returns the dimensions, -1 for unknown ones. A shape of
// unknown rank is an error.
func shapeFromProto(p *tfpb.TensorShapeProto) ([]int, error) {
	if p.GetUnknownRank() {
		return nil, fmt.Errorf("the shape's rank is unknown")
	}
	shape := make([]int, len(p.GetDim()))
	for i, d := range p.GetDim() {
		if d.GetSize() < -1 || d.GetSize() > math.MaxInt {
			return nil, fmt.Errorf("dimension %d is %d", i, d.GetSize())
		}
		shape[i] = int(d.GetSize())
	}
	return shape, nil
}
