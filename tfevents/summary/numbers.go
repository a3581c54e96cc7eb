package summary

import (
	"encoding/binary"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
)

// Numbers returns the elements of a tensor of float64 or float32, row by row: what
// histograms and PR curves are. It reports whether the tensor is one, and complete. As
// everywhere in TensorFlow, the last of too few listed values is repeated.
func Numbers(t *tfpb.TensorProto) ([]float64, bool) {
	n := elements(t.GetTensorShape())
	size := map[tfpb.DataType]int64{tfpb.DataType_DT_DOUBLE: 8, tfpb.DataType_DT_FLOAT: 4}[t.GetDtype()]
	if n < 0 || size == 0 {
		return nil, false
	}
	if b := t.GetTensorContent(); len(b) > 0 {
		if n > math.MaxInt64/size || int64(len(b)) != n*size {
			return nil, false
		}
		return numbersFromContent(b, int(size)), true
	}
	listed := t.GetDoubleVal()
	if t.GetDtype() == tfpb.DataType_DT_FLOAT {
		listed = make([]float64, len(t.GetFloatVal()))
		for i, v := range t.GetFloatVal() {
			listed[i] = float64(v)
		}
	}
	return fillUp(listed, n)
}

func numbersFromContent(b []byte, size int) []float64 {
	numbers := make([]float64, 0, len(b)/size)
	for ; len(b) > 0; b = b[size:] {
		if size == 8 {
			numbers = append(numbers, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		} else {
			numbers = append(numbers, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
		}
	}
	return numbers
}

// largestFill bounds what a few listed values may stand for: a shape alone costs
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
