package decode

import (
	"encoding/binary"
	"math"

	"github.com/trainerd/trainerd/internal/float16"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Scalar returns the value of a scalar in either style. Like TensorBoard's
// Python loader, it accepts any tensor of one number.
func Scalar(v *tfpb.Summary_Value) (float64, bool) {
	if x, ok := v.GetValue().(*tfpb.Summary_Value_SimpleValue); ok {
		return float64(x.SimpleValue), true
	}
	t := v.GetTensor()
	if t == nil || elements(t.GetTensorShape()) != 1 {
		return 0, false
	}
	if b := t.GetTensorContent(); len(b) > 0 {
		return numberFromContent(t.GetDtype(), b)
	}
	if listed := listedNumbers(t); len(listed) == 1 {
		return listed[0], true
	}
	return 0, false
}

// Numbers returns the elements of a tensor of numbers or bools, row by row. It reports
// whether the tensor is such a tensor, and complete. As everywhere in TensorFlow, if
// there are too few values, the last one is repeated.
func Numbers(t *tfpb.TensorProto) ([]float64, bool) {
	n := elements(t.GetTensorShape())
	size := sizes[t.GetDtype()]
	if n < 0 || size == 0 {
		return nil, false
	}
	if b := t.GetTensorContent(); len(b) > 0 {
		if n > math.MaxInt64/size || int64(len(b)) != n*size {
			return nil, false
		}
		numbers := make([]float64, n)
		for i := range numbers {
			numbers[i], _ = numberFromContent(t.GetDtype(), b[int64(i)*size:int64(i+1)*size])
		}
		return numbers, true
	}
	return fillUp(listedNumbers(t), n)
}

// sizes are the element sizes of the types whose elements are numbers or bools.
var sizes = map[tfpb.DataType]int64{
	tfpb.DataType_DT_DOUBLE: 8, tfpb.DataType_DT_FLOAT: 4, tfpb.DataType_DT_HALF: 2, tfpb.DataType_DT_BFLOAT16: 2,
	tfpb.DataType_DT_INT64: 8, tfpb.DataType_DT_INT32: 4, tfpb.DataType_DT_INT16: 2, tfpb.DataType_DT_INT8: 1,
	tfpb.DataType_DT_UINT64: 8, tfpb.DataType_DT_UINT32: 4, tfpb.DataType_DT_UINT16: 2, tfpb.DataType_DT_UINT8: 1,
	tfpb.DataType_DT_BOOL: 1,
}

// IsNumeric reports whether the elements of a type are numbers or bools, as [Numbers] returns them.
func IsNumeric(d tfpb.DataType) bool { return sizes[d] != 0 }

// largestFill bounds the number of elements that a few listed values may fill: a large shape costs
// nothing to write.
const largestFill = 1 << 20

func fillUp(listed []float64, n int64) ([]float64, bool) {
	have := int64(len(listed))
	if have > n || have == 0 && n > 0 || have < n && n > largestFill {
		return nil, false
	}
	for ; have < n; have++ {
		listed = append(listed, listed[len(listed)-1])
	}
	return listed, true
}

// elements returns the number of elements of a shape, or -1 if that is unknown
// or beyond counting.
func elements(s *tfpb.TensorShapeProto) int64 {
	n := int64(1)
	for _, d := range s.GetDim() {
		size := d.GetSize()
		if size < 0 || size > 0 && n > math.MaxInt64/size {
			return -1
		}
		n *= size
	}
	if s.GetUnknownRank() {
		return -1
	}
	return n
}

// numberFromContent decodes a tensor_content of one number.
func numberFromContent(d tfpb.DataType, b []byte) (float64, bool) {
	le := binary.LittleEndian
	switch len(b) {
	case 1:
		switch d {
		case tfpb.DataType_DT_INT8:
			return float64(int8(b[0])), true
		case tfpb.DataType_DT_UINT8, tfpb.DataType_DT_BOOL:
			return float64(b[0]), true
		}
	case 2:
		switch v := le.Uint16(b); d {
		case tfpb.DataType_DT_INT16:
			return float64(int16(v)), true
		case tfpb.DataType_DT_UINT16:
			return float64(v), true
		case tfpb.DataType_DT_HALF, tfpb.DataType_DT_BFLOAT16:
			return halfToFloat(d, v), true
		}
	case 4:
		switch v := le.Uint32(b); d {
		case tfpb.DataType_DT_FLOAT:
			return float64(math.Float32frombits(v)), true
		case tfpb.DataType_DT_INT32:
			return float64(int32(v)), true
		case tfpb.DataType_DT_UINT32:
			return float64(v), true
		}
	case 8:
		switch v := le.Uint64(b); d {
		case tfpb.DataType_DT_DOUBLE:
			return math.Float64frombits(v), true
		case tfpb.DataType_DT_INT64:
			return float64(int64(v)), true
		case tfpb.DataType_DT_UINT64:
			return float64(v), true
		}
	}
	return 0, false
}

// listedNumbers returns the numbers in the one typed list that a tensor uses.
func listedNumbers(t *tfpb.TensorProto) []float64 {
	switch {
	case len(t.GetFloatVal()) > 0:
		return converted(t.GetFloatVal())
	case len(t.GetDoubleVal()) > 0:
		return converted(t.GetDoubleVal())
	case len(t.GetIntVal()) > 0:
		return converted(t.GetIntVal())
	case len(t.GetInt64Val()) > 0:
		return converted(t.GetInt64Val())
	case len(t.GetUint32Val()) > 0:
		return converted(t.GetUint32Val())
	case len(t.GetUint64Val()) > 0:
		return converted(t.GetUint64Val())
	}
	numbers := make([]float64, 0, len(t.GetBoolVal())+len(t.GetHalfVal()))
	for _, v := range t.GetBoolVal() {
		if v {
			numbers = append(numbers, 1)
		} else {
			numbers = append(numbers, 0)
		}
	}
	for _, v := range t.GetHalfVal() {
		numbers = append(numbers, halfToFloat(t.GetDtype(), uint16(v)))
	}
	return numbers
}

func converted[T int32 | int64 | uint32 | uint64 | float32 | float64](list []T) []float64 {
	numbers := make([]float64, len(list))
	for i, v := range list {
		numbers[i] = float64(v)
	}
	return numbers
}

// halfToFloat returns the value of a half or bfloat16.
func halfToFloat(d tfpb.DataType, v uint16) float64 {
	if d == tfpb.DataType_DT_BFLOAT16 {
		return float64(float16.FromBfloat16(v))
	}
	return float64(float16.FromHalf(v))
}
