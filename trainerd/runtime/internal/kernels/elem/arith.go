package elem

import (
	"math"
	"math/cmplx"

	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Larger returns the larger of two numbers, x if it is NaN.
func Larger[T exec.Number](x, y T) T {
	if x != x || x > y {
		return x
	}
	return y
}

// Smaller returns the smaller of two numbers, x if it is NaN.
func Smaller[T exec.Number](x, y T) T {
	if x != x || x < y {
		return x
	}
	return y
}

// LaterLarger returns x if it is larger than y, else y: the step of a fold that
// NaN does not end, as TensorFlow has it.
func LaterLarger[T exec.Number](x, y T) T {
	if x > y {
		return x
	}
	return y
}

// LaterSmaller is LaterLarger for the smaller of two numbers.
func LaterSmaller[T exec.Number](x, y T) T {
	if x < y {
		return x
	}
	return y
}

// AddScalar sets d to x plus y.
func AddScalar[T exec.Number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] + y
	}
}

// MulScalar sets d to x times y.
func MulScalar[T exec.Number](d, x []T, y T) {
	x = x[:len(d)]
	for i := range d {
		d[i] = x[i] * y
	}
}

// Sum returns acc plus all of x.
func Sum[T exec.Arithmetic](acc T, x []T) T {
	for _, v := range x {
		acc += v
	}
	return acc
}

// Sigmoid returns the logistic function of x.
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Sqrt returns the square root of x.
func Sqrt[T exec.Float](x T) T { return T(math.Sqrt(float64(x))) }

// Absolute returns x without its sign.
func Absolute[T exec.Number](x T) T {
	if x < 0 {
		return -x
	}
	return x + 0 // turns -0 into 0
}

// Sign returns -1, 0 or 1, and NaN of NaN.
func Sign[T exec.Number](x T) T {
	switch {
	case x > 0:
		return 1
	case x < 0:
		var zero T
		return zero - 1
	case x == 0:
		return 0 // for -0, too
	}
	return x
}

// LogSum returns the logarithm of exp(x) + exp(y). A y that is NaN counts
// as x once more, as in TensorFlow.
func LogSum[T float32 | float64](x, y T) T {
	low, high := float64(x), float64(x)
	if y < x {
		low = float64(y)
	}
	if x < y {
		high = float64(y)
	}
	if math.IsInf(high, 0) {
		return T(high)
	}
	return T(high + math.Log1p(math.Exp(low-high)))
}

// adders add a tensor to another one.
var adders = map[tfpb.DataType]func(sum, t *exec.Tensor){
	exec.Float32: addElems[float32], exec.Float64: addElems[float64], exec.Int32: addElems[int32], exec.Int64: addElems[int64],
	exec.Int8: addElems[int8], exec.Int16: addElems[int16],
	exec.Uint8: addElems[uint8], exec.Uint16: addElems[uint16],
	exec.Uint32: addElems[uint32], exec.Uint64: addElems[uint64],
	exec.Complex64: addElems[complex64], exec.Complex128: addElems[complex128],
}

func addElems[T exec.Arithmetic](sum, t *exec.Tensor) {
	d, x := exec.Elems[T](sum), exec.Elems[T](t)
	for i := range d {
		d[i] += x[i]
	}
}

// AddTensor adds t to sum, of the same type and shape.
func AddTensor(c *exec.KernelContext, sum, t *exec.Tensor) error {
	add := adders[sum.DType]
	if add == nil {
		return c.Invalid("%s cannot be added", exec.TypeName(sum.DType))
	}
	add(sum, t)
	return nil
}

// AddTo adds x to acc.
func AddTo[T exec.Arithmetic](acc, x []T) {
	switch acc := any(acc).(type) {
	case []float32:
		vec.Add(acc, acc, any(x).([]float32))
		return
	case []float64:
		vec.Add(acc, acc, any(x).([]float64))
		return
	}
	x = x[:len(acc)]
	for i := range acc {
		acc[i] += x[i]
	}
}

// The additions that are shared between processors.
var (
	addFloat32 Slicewise[float32] = vec.Add[float32]
	addFloat64 Slicewise[float64] = vec.Add[float64]
)

// AddShared sets d to x plus y, shared between processors when they are long.
func AddShared[T exec.Arithmetic](c *exec.KernelContext, d, x, y []T) {
	switch d := any(d).(type) {
	case []float32:
		addFloat32.apply(c, d, any(x).([]float32), any(y).([]float32))
		return
	case []float64:
		addFloat64.apply(c, d, any(x).([]float64), any(y).([]float64))
		return
	}
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

// Conj returns the complex conjugate of z.
func Conj[T exec.ComplexNumber](z T) T { return T(cmplx.Conj(complex128(z))) }
