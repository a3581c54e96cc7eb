package elem

import (
	"bytes"
	"slices"

	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Fold folds rows of x into those of d, of the same type. A row has n elements; row k
// of d begins at element at[k] and is left alone where that is negative, row k of x
// begins at k*step. An element of d may come more than once.
type Fold func(d *exec.Tensor, at []int, x *exec.Tensor, step, n int)

// FoldTypes returns the types that an update of rows has in TensorFlow.
func FoldTypes(op string) exec.TypeSet {
	switch op {
	case "Update":
		return exec.ValueTypes
	case "Min", "Max", "LaterMin", "LaterMax":
		return exec.RealTypes | exec.Halves
	}
	return exec.RealTypes | exec.Halves | exec.ComplexTypes
}

// FoldOf returns the fold of an op for a type. The table of ops has checked the
// type.
func FoldOf(op string, dt tfpb.DataType) Fold {
	switch {
	case op == "Update" && dt == exec.String:
		// A variable outlives the step, and the caller may have fed the text.
		return foldRows(each(func(_, x []byte) []byte { return bytes.Clone(x) }))
	case op == "Update":
		return copyRows
	case exec.Halves.Has(dt):
		return halfFold(dt, realNumber[float32](op))
	}
	switch dt {
	case exec.Float32:
		return foldOfFloats[float32](op)
	case exec.Float64:
		return foldOfFloats[float64](op)
	case exec.Complex64:
		return foldOfNumbers[complex64](op)
	case exec.Complex128:
		return foldOfNumbers[complex128](op)
	case exec.Bool:
		return foldRows(each(truths(op)))
	case exec.String:
		return foldRows(each(func(old, x []byte) []byte { return slices.Concat(old, x) }))
	}
	return intFold(op, dt)
}

func intFold(op string, dt tfpb.DataType) Fold {
	switch dt {
	case exec.Int8:
		return foldOfReals[int8](op)
	case exec.Int16:
		return foldOfReals[int16](op)
	case exec.Int32:
		return foldOfReals[int32](op)
	case exec.Uint8:
		return foldOfReals[uint8](op)
	case exec.Uint16:
		return foldOfReals[uint16](op)
	case exec.Uint32:
		return foldOfReals[uint32](op)
	case exec.Uint64:
		return foldOfReals[uint64](op)
	}
	return foldOfReals[int64](op)
}

// foldRows is the fold of a function that folds x into d, of the same length.
func foldRows[T exec.Element](f func(d, x []T)) Fold {
	return func(d *exec.Tensor, at []int, x *exec.Tensor, step, n int) {
		ds, xs := exec.Elems[T](d), exec.Elems[T](x)
		for k, to := range at {
			if to >= 0 {
				f(ds[to:to+n], xs[k*step:k*step+n])
			}
		}
	}
}

func copyRows(d *exec.Tensor, at []int, x *exec.Tensor, step, n int) {
	for k, to := range at {
		if to >= 0 {
			exec.CopyElems(d, to, x, k*step, n)
		}
	}
}

func each[T exec.Element](f func(old, x T) T) func(d, x []T) {
	return func(d, x []T) {
		for i, v := range x {
			d[i] = f(d[i], v)
		}
	}
}

// halfFold rounds to the type of 16 bits after each update, as TensorFlow does.
func halfFold(dt tfpb.DataType, f func(old, x float32) float32) Fold {
	widen, narrow := exec.Widener(dt), exec.Narrower(dt)
	return foldRows(each(func(old, x uint16) uint16 { return narrow(f(widen(old), widen(x))) }))
}

// foldOfFloats is foldOfReals, by vectors.
func foldOfFloats[T exec.Float](op string) Fold {
	switch op {
	case "Max":
		return foldRows(func(d, x []T) { vec.Maximum(d, d, x) })
	case "Min":
		return foldRows(func(d, x []T) { vec.Minimum(d, d, x) })
	case "LaterMax":
		return foldRows(vec.Raise[T])
	case "LaterMin":
		return foldRows(vec.Lower[T])
	}
	return foldOfReals[T](op)
}

func foldOfReals[T exec.Number](op string) Fold { return foldOf(op, realNumber[T](op)) }

func foldOfNumbers[T exec.Arithmetic](op string) Fold { return foldOf(op, number[T](op)) }

// foldOf returns the fold of an op that f does to one element.
func foldOf[T exec.Arithmetic](op string, f func(old, x T) T) Fold {
	switch op {
	case "Add":
		return addRows[T]
	case "Sub":
		return foldRows(subtract[T])
	}
	return foldRows(each(f))
}

// addRows is the fold that adds, without a call for each short row.
func addRows[T exec.Arithmetic](d *exec.Tensor, at []int, x *exec.Tensor, step, n int) {
	const short = 16 // elements that vectors are not worth
	ds, xs := exec.Elems[T](d), exec.Elems[T](x)
	for k, to := range at {
		switch {
		case to < 0:
		case n == 1:
			ds[to] += xs[k*step]
		case n > short:
			AddTo(ds[to:to+n], xs[k*step:k*step+n])
		default:
			row := ds[to : to+n]
			for i, v := range xs[k*step : k*step+n] {
				row[i] += v
			}
		}
	}
}

// realNumber returns the function that folds one real number into another.
func realNumber[T exec.Number](op string) func(old, x T) T {
	switch op {
	case "Min":
		return Smaller[T]
	case "Max":
		return Larger[T]
	case "LaterMin":
		return LaterSmaller[T]
	case "LaterMax":
		return LaterLarger[T]
	}
	return number[T](op)
}

func number[T exec.Arithmetic](op string) func(old, x T) T {
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

func subtract[T exec.Arithmetic](d, x []T) {
	d = d[:len(x)]
	for i, v := range x {
		d[i] -= v
	}
}

// truths adds and subtracts as C++ does: a number that is not zero is true.
func truths(op string) func(old, x bool) bool {
	if op == "Sub" {
		return func(old, x bool) bool { return old != x }
	}
	return func(old, x bool) bool { return old || x }
}
