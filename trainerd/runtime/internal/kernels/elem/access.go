// Package elem has what kernels of several families do with the elements of
// tensors: read and store them as numbers whatever their type, render and parse
// them, walk over them in strides, broadcast them, and fold them.
package elem

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// RealAt returns element i of a tensor of any real type, 16 bits included.
func RealAt(t *exec.Tensor, i int) float64 {
	switch t.DType {
	case exec.Float32, exec.Float64:
		return t.FloatAt(i)
	case exec.Int32, exec.Int64:
		return float64(t.IntAt(i))
	case exec.Uint8, exec.Int8:
		return float64(SmallIntAt(t, i))
	case exec.Int16:
		return float64(exec.Elems[int16](t)[i])
	case exec.Uint16:
		return float64(exec.Elems[uint16](t)[i])
	case exec.Uint32:
		return float64(exec.Elems[uint32](t)[i])
	case exec.Uint64:
		return float64(exec.Elems[uint64](t)[i])
	case exec.Half, exec.Bfloat16:
		return AnyFloatAt(t, i)
	}
	return math.NaN()
}

// SmallIntAt returns element i of an integer tensor of any width.
func SmallIntAt(t *exec.Tensor, i int) int64 {
	switch t.DType {
	case exec.Uint8:
		return int64(exec.Elems[uint8](t)[i])
	case exec.Int8:
		return int64(exec.Elems[int8](t)[i])
	}
	return int64(t.IntAt(i))
}

// SetNumber stores a number in one of the larger types.
func SetNumber(t *exec.Tensor, i int, v float64) {
	switch t.DType {
	case exec.Float32:
		exec.Elems[float32](t)[i] = float32(v)
	case exec.Float64:
		exec.Elems[float64](t)[i] = v
	case exec.Int32:
		exec.Elems[int32](t)[i] = int32(v)
	case exec.Int64:
		exec.Elems[int64](t)[i] = int64(v)
	}
}

// AnyFloatAt returns element i of a tensor of a floating-point type.
func AnyFloatAt(t *exec.Tensor, i int) float64 {
	if exec.Halves.Has(t.DType) {
		return float64(exec.Widener(t.DType)(exec.Elems[uint16](t)[i]))
	}
	return t.FloatAt(i)
}

// SignedAt returns element i of a tensor of a signed integer type, and false
// for other types.
func SignedAt(t *exec.Tensor, i int) (int64, bool) {
	switch t.DType {
	case exec.Int8:
		return int64(exec.Elems[int8](t)[i]), true
	case exec.Int16:
		return int64(exec.Elems[int16](t)[i]), true
	case exec.Int32, exec.Int64:
		return int64(t.IntAt(i)), true
	}
	return 0, false
}

// UnsignedAt returns element i of a tensor of an unsigned integer type.
func UnsignedAt(t *exec.Tensor, i int) uint64 {
	switch t.DType {
	case exec.Uint8:
		return uint64(exec.Elems[uint8](t)[i])
	case exec.Uint16:
		return uint64(exec.Elems[uint16](t)[i])
	case exec.Uint32:
		return uint64(exec.Elems[uint32](t)[i])
	}
	return exec.Elems[uint64](t)[i]
}

// KeyOf returns the bytes of element i.
func KeyOf(t *exec.Tensor, i int) string {
	if t.DType == exec.String {
		return string(t.Strings[i])
	}
	size := exec.ElemSize(t.DType)
	return string(t.Data[i*size : (i+1)*size])
}

// Truth says whether a condition of any type holds.
func Truth(c *exec.KernelContext, t *exec.Tensor) (bool, error) {
	switch {
	case len(t.Shape) > 0:
		return t.NumElements() > 0, nil
	case t.DType == exec.Bool:
		return exec.Elems[bool](t)[0], nil
	case t.DType == exec.String:
		return len(t.Strings[0]) > 0, nil
	case exec.RealTypes.Has(t.DType):
		return RealAt(t, 0) != 0, nil
	}
	return false, c.Invalid("%s is not a condition", t.Describe())
}

// Zero clears a tensor's memory.
func Zero(t *exec.Tensor) {
	clear(t.Data)
	if t.DType == exec.String {
		for i := range t.Strings {
			t.Strings[i] = []byte{}
		}
	}
}

// ZeroElems makes n elements of t, from at on, zero.
func ZeroElems(t *exec.Tensor, at, n int) {
	if t.DType == exec.String {
		clear(t.Strings[at : at+n])
		return
	}
	size := exec.ElemSize(t.DType)
	clear(t.Data[at*size : (at+n)*size])
}

// Fill sets all elements of d to the first of v.
func Fill(d, v *exec.Tensor) {
	n := d.NumElements()
	if n == 0 {
		return
	}
	if d.DType == exec.String {
		for i := range d.Strings {
			d.Strings[i] = v.Strings[0]
		}
		return
	}
	size := exec.ElemSize(d.DType)
	copy(d.Data, v.Data[:size])
	for done := size; done < len(d.Data); done *= 2 {
		copy(d.Data[done:], d.Data[:done])
	}
}

// FillAll is Fill, and stops where the run is cancelled.
func FillAll(c *exec.KernelContext, d, v *exec.Tensor) error {
	if len(d.Data) <= exec.PieceBytes {
		Fill(d, v)
		return nil
	}
	return c.InPieces(d, func(part *exec.Tensor) { Fill(part, v) })
}

// ZeroAll is Zero, and stops where the run is cancelled.
func ZeroAll(c *exec.KernelContext, t *exec.Tensor) error {
	if len(t.Data) <= exec.PieceBytes {
		Zero(t)
		return nil
	}
	return c.InPieces(t, Zero)
}

// CompareReals orders two numbers.
func CompareReals(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// SetShape makes output i the shape of t.
func SetShape(c *exec.KernelContext, i int, dt tfpb.DataType, t *exec.Tensor) {
	d := c.Out(i, dt, len(t.Shape))
	for k, v := range t.Shape {
		exec.SetInt(d, k, v)
	}
}
