package array

import (
	"bytes"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// fold folds n elements of x, those from the given one, into the elements of d
// at a position. Both have one type.
type fold func(d *exec.Tensor, at int, x *exec.Tensor, from, n int)

// foldTypes returns the types that an update of rows has in TensorFlow.
func foldTypes(op string) exec.TypeSet {
	switch op {
	case "Update":
		return exec.ValueTypes
	case "Min", "Max":
		return exec.RealTypes | exec.Halves
	}
	return exec.RealTypes | exec.Halves | exec.ComplexTypes
}

// foldOf returns the fold of an op for a type. The table of ops has checked the
// type.
func foldOf(op string, dt tfpb.DataType) fold {
	switch {
	case op == "Update" && dt == exec.String:
		// A variable outlives the step, and the caller may have fed the text.
		return foldElems(func(_, x []byte) []byte { return bytes.Clone(x) })
	case op == "Update":
		return exec.CopyElems
	case exec.Halves.Has(dt):
		return halfFold(dt, combiner[float32](op))
	}
	switch dt {
	case exec.Float32:
		return foldElems(combiner[float32](op))
	case exec.Float64:
		return foldElems(combiner[float64](op))
	case exec.Complex64:
		return foldElems(arithmetic[complex64](op))
	case exec.Complex128:
		return foldElems(arithmetic[complex128](op))
	case exec.Bool:
		return foldElems(truths(op))
	case exec.String:
		return foldElems(func(old, x []byte) []byte { return slices.Concat(old, x) })
	}
	return intFold(op, dt)
}

func intFold(op string, dt tfpb.DataType) fold {
	switch dt {
	case exec.Int8:
		return foldElems(combiner[int8](op))
	case exec.Int16:
		return foldElems(combiner[int16](op))
	case exec.Int32:
		return foldElems(combiner[int32](op))
	case exec.Uint8:
		return foldElems(combiner[uint8](op))
	case exec.Uint16:
		return foldElems(combiner[uint16](op))
	case exec.Uint32:
		return foldElems(combiner[uint32](op))
	case exec.Uint64:
		return foldElems(combiner[uint64](op))
	}
	return foldElems(combiner[int64](op))
}

func foldElems[T exec.Element](f func(old, x T) T) fold {
	return func(d *exec.Tensor, at int, x *exec.Tensor, from, n int) {
		ds, xs := exec.Elems[T](d)[at:at+n], exec.Elems[T](x)[from:from+n]
		for i, v := range xs {
			ds[i] = f(ds[i], v)
		}
	}
}

// halfFold rounds to the type of 16 bits after each update, as TensorFlow does.
func halfFold(dt tfpb.DataType, f func(old, x float32) float32) fold {
	wide, narrow := exec.Widener(dt), exec.Narrower(dt)
	return foldElems(func(old, x uint16) uint16 { return narrow(f(wide(old), wide(x))) })
}

// combiner returns the function that folds an update into an element.
func combiner[T exec.Number](op string) func(old, x T) T {
	switch op {
	case "Min":
		return elem.Smaller[T]
	case "Max":
		return elem.Larger[T]
	}
	return arithmetic[T](op)
}

func arithmetic[T exec.Arithmetic](op string) func(old, x T) T {
	switch op {
	case "Sub":
		return func(old, x T) T { return old - x }
	case "Mul":
		return func(old, x T) T { return old * x }
	case "Div":
		return func(old, x T) T { return old / x }
	}
	return func(old, x T) T { return old + x }
}

// truths adds and subtracts as C++ does: a number that is not zero is true.
func truths(op string) func(old, x bool) bool {
	if op == "Sub" {
		return func(old, x bool) bool { return old != x }
	}
	return func(old, x bool) bool { return old || x }
}
