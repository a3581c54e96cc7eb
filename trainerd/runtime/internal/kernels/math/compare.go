package math

import (
	"bytes"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Comparisons, and the logic of booleans and bits.
var compareOps = exec.OpTable{
	"Less":             {Types: exec.RealTypes, Build: buildLess},
	"LessEqual":        {Types: exec.RealTypes, Build: buildLessEqual},
	"Greater":          {Types: exec.RealTypes, Build: buildGreater},
	"GreaterEqual":     {Types: exec.RealTypes, Build: buildGreaterEqual},
	"Equal":            {Types: exec.PlainTypes | exec.ComplexTypes | exec.SetOf(exec.String), Build: buildEqual},
	"NotEqual":         {Types: exec.PlainTypes | exec.ComplexTypes | exec.SetOf(exec.String), Build: buildNotEqual},
	"LogicalAnd":       {Build: exec.WithoutAttrs(elem.Combine(andLoops()))},
	"LogicalOr":        {Build: exec.WithoutAttrs(elem.Combine(orLoops()))},
	"LogicalNot":       {Build: exec.WithoutAttrs(elem.Unary(func(x bool) bool { return !x }))},
	"ApproximateEqual": {Types: exec.Floats, Build: buildApproximateEqual},
}

func lessLoops[T exec.Number]() *elem.Loops[T, bool] {
	return &elem.Loops[T, bool]{
		Vv: func(d []bool, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] < y[i]
			}
		},
		Vs: func(d []bool, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = x[i] < y
			}
		},
		Sv: func(d []bool, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = x < y[i]
			}
		},
	}
}

func lessEqualLoops[T exec.Number]() *elem.Loops[T, bool] {
	return &elem.Loops[T, bool]{
		Vv: func(d []bool, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] <= y[i]
			}
		},
		Vs: func(d []bool, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = x[i] <= y
			}
		},
		Sv: func(d []bool, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = x <= y[i]
			}
		},
	}
}

// lessFloats and lessEqualFloats are by vectors.
func lessFloats() *elem.Loops[float32, bool] {
	return &elem.Loops[float32, bool]{Vv: vec.Less, Vs: vec.LessScalar, Sv: vec.ScalarLess}
}

func lessEqualFloats() *elem.Loops[float32, bool] {
	return &elem.Loops[float32, bool]{Vv: vec.LessEqual, Vs: vec.LessEqualScalar, Sv: vec.ScalarLessEqual}
}

// turned exchanges the two sides of a comparison.
func turned[T exec.Number](f *elem.Loops[T, bool]) *elem.Loops[T, bool] {
	return &elem.Loops[T, bool]{
		Vv: func(d []bool, x, y []T) { f.Vv(d, y, x) },
		Vs: func(d []bool, x []T, y T) { f.Sv(d, y, x) },
		Sv: func(d []bool, x T, y []T) { f.Vs(d, y, x) },
	}
}

func greaterLoops[T exec.Number]() *elem.Loops[T, bool] { return turned(lessLoops[T]()) }

func greaterEqualLoops[T exec.Number]() *elem.Loops[T, bool] { return turned(lessEqualLoops[T]()) }

// equalLoops compare for equality, and differ if unequal is set.
func equalLoops[T comparable](unequal bool) *elem.Loops[T, bool] {
	scalar := func(d []bool, x []T, y T) {
		x = x[:len(d)]
		for i := range d {
			d[i] = (x[i] == y) != unequal
		}
	}
	return &elem.Loops[T, bool]{
		Vv: func(d []bool, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = (x[i] == y[i]) != unequal
			}
		},
		Vs: scalar,
		Sv: func(d []bool, x T, y []T) { scalar(d, y, x) },
	}
}

// equalFloats is equalLoops by vectors.
func equalFloats(unequal bool) *elem.Loops[float32, bool] {
	scalar := func(d []bool, x []float32, y float32) { vec.EqualScalar(d, x, y, unequal) }
	return &elem.Loops[float32, bool]{
		Vv: func(d []bool, x, y []float32) { vec.Equal(d, x, y, unequal) },
		Vs: scalar,
		Sv: func(d []bool, x float32, y []float32) { scalar(d, y, x) },
	}
}

func andLoops() *elem.Loops[bool, bool] {
	scalar := func(d, x []bool, y bool) {
		if y {
			copy(d, x)
		} else {
			clear(d)
		}
	}
	return &elem.Loops[bool, bool]{
		Vv: vec.And,
		Vs: scalar,
		Sv: func(d []bool, x bool, y []bool) { scalar(d, y, x) },
	}
}

func orLoops() *elem.Loops[bool, bool] {
	scalar := func(d, x []bool, y bool) {
		for i := range d {
			d[i] = x[i] || y
		}
	}
	return &elem.Loops[bool, bool]{
		Vv: vec.Or,
		Vs: scalar,
		Sv: func(d []bool, x bool, y []bool) { scalar(d, y, x) },
	}
}

func buildLess(b *exec.OpConstruction) (exec.Kernel, error) {
	return byNumber(b.DType("T"), elem.Combine(lessFloats()), elem.Combine(lessLoops[float64]()), elem.Combine(lessLoops[int32]()), elem.Combine(lessLoops[int64]()),
		elem.Combine(lessLoops[int8]()), elem.Combine(lessLoops[int16]()), elem.Combine(lessLoops[uint8]()), elem.Combine(lessLoops[uint16]()), elem.Combine(lessLoops[uint32]()), elem.Combine(lessLoops[uint64]()))
}

func buildLessEqual(b *exec.OpConstruction) (exec.Kernel, error) {
	return byNumber(b.DType("T"), elem.Combine(lessEqualFloats()), elem.Combine(lessEqualLoops[float64]()), elem.Combine(lessEqualLoops[int32]()), elem.Combine(lessEqualLoops[int64]()),
		elem.Combine(lessEqualLoops[int8]()), elem.Combine(lessEqualLoops[int16]()), elem.Combine(lessEqualLoops[uint8]()), elem.Combine(lessEqualLoops[uint16]()), elem.Combine(lessEqualLoops[uint32]()), elem.Combine(lessEqualLoops[uint64]()))
}

func buildGreater(b *exec.OpConstruction) (exec.Kernel, error) {
	return byNumber(b.DType("T"), elem.Combine(turned(lessFloats())), elem.Combine(greaterLoops[float64]()), elem.Combine(greaterLoops[int32]()), elem.Combine(greaterLoops[int64]()),
		elem.Combine(greaterLoops[int8]()), elem.Combine(greaterLoops[int16]()), elem.Combine(greaterLoops[uint8]()), elem.Combine(greaterLoops[uint16]()), elem.Combine(greaterLoops[uint32]()), elem.Combine(greaterLoops[uint64]()))
}

func buildGreaterEqual(b *exec.OpConstruction) (exec.Kernel, error) {
	return byNumber(b.DType("T"), elem.Combine(turned(lessEqualFloats())), elem.Combine(greaterEqualLoops[float64]()), elem.Combine(greaterEqualLoops[int32]()), elem.Combine(greaterEqualLoops[int64]()),
		elem.Combine(greaterEqualLoops[int8]()), elem.Combine(greaterEqualLoops[int16]()), elem.Combine(greaterEqualLoops[uint8]()), elem.Combine(greaterEqualLoops[uint16]()), elem.Combine(greaterEqualLoops[uint32]()), elem.Combine(greaterEqualLoops[uint64]()))
}

// relaxed lets shapes that do not broadcast compare as different, which an
// attribute of the equality ops asks for.
func relaxed(b *exec.OpConstruction, k exec.Kernel, unequal bool) exec.Kernel {
	if b.Bool("incompatible_shape_error") {
		return k
	}
	return func(c *exec.KernelContext) error {
		var bc elem.Broadcast
		if bc.Init(c.In(0).Shape, c.In(1).Shape) == nil {
			return k(c)
		}
		exec.Elems[bool](c.Out(0, exec.Bool))[0] = unequal
		return nil
	}
}

func buildEqual(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	var k exec.Kernel
	var err error
	switch dt {
	case exec.String:
		k = elem.Combine(elem.LoopsOf(bytes.Equal))
	case exec.Bool:
		k = elem.Combine(equalLoops[bool](false))
	case exec.Complex64:
		k = elem.Combine(equalLoops[complex64](false))
	case exec.Complex128:
		k = elem.Combine(equalLoops[complex128](false))
	default:
		k, err = byNumber(dt, elem.Combine(equalFloats(false)), elem.Combine(equalLoops[float64](false)), elem.Combine(equalLoops[int32](false)), elem.Combine(equalLoops[int64](false)),
			elem.Combine(equalLoops[int8](false)), elem.Combine(equalLoops[int16](false)), elem.Combine(equalLoops[uint8](false)), elem.Combine(equalLoops[uint16](false)), elem.Combine(equalLoops[uint32](false)), elem.Combine(equalLoops[uint64](false)))
	}
	return relaxed(b, k, false), err
}

func buildNotEqual(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	var k exec.Kernel
	var err error
	switch dt {
	case exec.String:
		k = elem.Combine(elem.LoopsOf(func(x, y []byte) bool { return !bytes.Equal(x, y) }))
	case exec.Bool:
		k = elem.Combine(equalLoops[bool](true))
	case exec.Complex64:
		k = elem.Combine(equalLoops[complex64](true))
	case exec.Complex128:
		k = elem.Combine(equalLoops[complex128](true))
	default:
		k, err = byNumber(dt, elem.Combine(equalFloats(true)), elem.Combine(equalLoops[float64](true)), elem.Combine(equalLoops[int32](true)), elem.Combine(equalLoops[int64](true)),
			elem.Combine(equalLoops[int8](true)), elem.Combine(equalLoops[int16](true)), elem.Combine(equalLoops[uint8](true)), elem.Combine(equalLoops[uint16](true)), elem.Combine(equalLoops[uint32](true)), elem.Combine(equalLoops[uint64](true)))
	}
	return relaxed(b, k, true), err
}

func buildApproximateEqual(b *exec.OpConstruction) (exec.Kernel, error) {
	tol := b.Float("tolerance")
	return exec.ByFloat(b.DType("T"),
		pairs(func(x, y float32) bool { return elem.Absolute(x-y) <= float32(tol) }),
		pairs(func(x, y float64) bool { return elem.Absolute(x-y) <= tol }))
}

// pairs is the kernel of a comparison of two tensors of one shape.
func pairs[T exec.Float](f func(x, y T) bool) exec.Kernel {
	k := elem.Combine(elem.LoopsOf(f))
	return func(c *exec.KernelContext) error {
		if x, y := c.In(0), c.In(1); !exec.SameShape(x.Shape, y.Shape) {
			return c.Invalid("the inputs have the shapes %s and %s", exec.ShapeString(x.Shape), exec.ShapeString(y.Shape))
		}
		return k(c)
	}
}
