package array

import (
	"encoding/binary"
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// startOf returns what a segment is before its first row: 0, 1, or the lowest or
// highest finite value of a type.
func (s segment) startOf(dt tfpb.DataType) *exec.Tensor {
	t := &exec.Tensor{}
	switch s.fold {
	case "Mul":
		setCount(t, dt, 1)
	case "LaterMax":
		t.DType, t.Data = dt, nativeBytes(extremes[dt].lowest)
	case "LaterMin":
		t.DType, t.Data = dt, nativeBytes(extremes[dt].highest)
	default:
		setCount(t, dt, 0)
	}
	return t
}

func nativeBytes(v any) []byte {
	b, err := binary.Append(nil, binary.NativeEndian, v)
	if err != nil {
		panic(err) // all of them are numbers of a fixed size
	}
	return b
}

// extremes are the lowest and highest finite values of the types that have an order;
// of those of 16 bits, the bits.
var extremes = map[tfpb.DataType]struct{ lowest, highest any }{
	exec.Half:     {uint16(0xfbff), uint16(0x7bff)},
	exec.Bfloat16: {uint16(0xff7f), uint16(0x7f7f)},
	exec.Float32:  {float32(-math.MaxFloat32), float32(math.MaxFloat32)},
	exec.Float64:  {-math.MaxFloat64, math.MaxFloat64},
	exec.Int8:     {int8(math.MinInt8), int8(math.MaxInt8)},
	exec.Int16:    {int16(math.MinInt16), int16(math.MaxInt16)},
	exec.Int32:    {int32(math.MinInt32), int32(math.MaxInt32)},
	exec.Int64:    {int64(math.MinInt64), int64(math.MaxInt64)},
	exec.Uint8:    {uint8(0), uint8(math.MaxUint8)},
	exec.Uint16:   {uint16(0), uint16(math.MaxUint16)},
	exec.Uint32:   {uint32(0), uint32(math.MaxUint32)},
	exec.Uint64:   {uint64(0), uint64(math.MaxUint64)},
}

// setCount makes t a scalar of a type, the number n as far as the type has it.
func setCount(t *exec.Tensor, dt tfpb.DataType, n int) {
	t.DType = dt
	if size := exec.ElemSize(dt); len(t.Data) != size {
		t.Data = make([]byte, size)
	}
	switch dt {
	case exec.Half, exec.Bfloat16:
		exec.Elems[uint16](t)[0] = exec.Narrower(dt)(float32(n))
	case exec.Complex64:
		exec.Elems[complex64](t)[0] = complex(float32(n), 0)
	case exec.Complex128:
		exec.Elems[complex128](t)[0] = complex(float64(n), 0)
	case exec.Int8, exec.Uint8:
		t.Data[0] = uint8(n)
	case exec.Int16, exec.Uint16:
		exec.Elems[uint16](t)[0] = uint16(n)
	case exec.Uint32:
		exec.Elems[uint32](t)[0] = uint32(n)
	case exec.Uint64:
		exec.Elems[uint64](t)[0] = uint64(n)
	default:
		elem.SetNumber(t, 0, float64(n))
	}
}
