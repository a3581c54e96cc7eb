package math

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Sums, products, powers and extremes.
var arithmeticOps = exec.OpTable{
	"Add":               alsoComplex(exec.OpSpec{Types: exec.RealTypes | exec.SetOf(exec.String), Build: buildAdd}, elem.Combine(elem.LoopsOf(addOf[complex64])), elem.Combine(elem.LoopsOf(addOf[complex128]))),
	"AddV2":             alsoComplex(exec.OpSpec{Types: exec.RealTypes | exec.SetOf(exec.String), Build: buildAdd}, elem.Combine(elem.LoopsOf(addOf[complex64])), elem.Combine(elem.LoopsOf(addOf[complex128]))),
	"Sub":               alsoComplex(exec.OpSpec{Types: exec.RealTypes, Build: buildSub}, elem.Combine(elem.LoopsOf(subOf[complex64])), elem.Combine(elem.LoopsOf(subOf[complex128]))),
	"Mul":               alsoComplex(exec.OpSpec{Types: exec.RealTypes, Build: buildMul}, elem.Combine(elem.LoopsOf(mulOf[complex64])), elem.Combine(elem.LoopsOf(mulOf[complex128]))),
	"Pow":               {Types: exec.Numbers, Build: buildPow},
	"Maximum":           {Types: exec.RealTypes, Build: buildMaximum},
	"Minimum":           {Types: exec.RealTypes, Build: buildMinimum},
	"SquaredDifference": {Types: exec.Numbers, Build: buildSquaredDifference},
	"Atan2":             floatBinary(math.Atan2),
	"MulNoNan":          floatBinary(func(x, y float64) float64 { return unlessZero(y, x*y) }),
	"Xlogy":             floatBinary(func(x, y float64) float64 { return unlessZero(x, x*math.Log(y)) }),
	"Xlog1py":           floatBinary(func(x, y float64) float64 { return unlessZero(x, x*math.Log1p(y)) }),
	"AddN":              alsoComplex(exec.OpSpec{Types: exec.RealTypes | exec.SetOf(exec.Variant), Build: buildAddN}, addN[complex64], addN[complex128]),
	"AccumulateNV2":     {Types: exec.RealTypes, Build: buildAddN},
	"ClipByValue":       {Types: exec.Numbers, Build: buildClip},
	"Cross": {Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), cross[float32], cross[float64])
	}},
}

func unlessZero(x, v float64) float64 {
	if x == 0 {
		return 0
	}
	return v
}

// floatBinary is an op on floats, computed in float64.
func floatBinary(f func(x, y float64) float64) exec.OpSpec {
	narrow := elem.LoopsOf(func(x, y float32) float32 { return float32(f(float64(x), float64(y))) })
	return exec.OpSpec{Types: exec.Floats, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		return exec.ByFloat(b.DType("T"), elem.Combine(narrow), elem.Combine(elem.LoopsOf(f)))
	}}
}

func addLoops[T exec.Number]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] + y[i]
			}
		},
		Vs: elem.AddScalar[T],
		Sv: func(d []T, x T, y []T) { elem.AddScalar(d, y, x) },
	}
}

func subLoops[T exec.Number]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] - y[i]
			}
		},
		Vs: func(d, x []T, y T) {
			x = x[:len(d)]
			for i := range d {
				d[i] = x[i] - y
			}
		},
		Sv: func(d []T, x T, y []T) {
			y = y[:len(d)]
			for i := range d {
				d[i] = x - y[i]
			}
		},
	}
}

func mulLoops[T exec.Number]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{
		Vv: func(d, x, y []T) {
			x, y = x[:len(d)], y[:len(d)]
			for i := range d {
				d[i] = x[i] * y[i]
			}
		},
		Vs: elem.MulScalar[T],
		Sv: func(d []T, x T, y []T) { elem.MulScalar(d, y, x) },
	}
}

// byNumber picks among the kernels of all real types. That of float32 may be nil
// where the caller has answered for it: nearly all nodes have this type, and making
// the kernels of the others for each would take most of the time of compiling.
func byNumber(dt tfpb.DataType, f32, f64, i32, i64, i8, i16, u8, u16, u32, u64 exec.Kernel) (exec.Kernel, error) {
	switch dt {
	case exec.Int8:
		return i8, nil
	case exec.Int16:
		return i16, nil
	case exec.Uint8:
		return u8, nil
	case exec.Uint16:
		return u16, nil
	case exec.Uint32:
		return u32, nil
	case exec.Uint64:
		return u64, nil
	}
	return exec.ByType(dt, f32, f64, i32, i64)
}

func buildAdd(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	if dt == exec.String {
		return elem.Combine(elem.LoopsOf(func(x, y []byte) []byte { return append(append([]byte{}, x...), y...) })), nil
	}
	if dt == exec.Float32 {
		return chained(b, addFloats[float32]()), nil
	}
	return byNumber(dt, nil, elem.SliceCombine(addFloats[float64]()), elem.Combine(addLoops[int32]()), elem.Combine(addLoops[int64]()),
		elem.Combine(addLoops[int8]()), elem.Combine(addLoops[int16]()), elem.Combine(addLoops[uint8]()), elem.Combine(addLoops[uint16]()), elem.Combine(addLoops[uint32]()), elem.Combine(addLoops[uint64]()))
}

func buildSub(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	if dt == exec.Float32 {
		return chained(b, subFloats[float32]()), nil
	}
	return byNumber(dt, nil, elem.SliceCombine(subFloats[float64]()), elem.Combine(subLoops[int32]()), elem.Combine(subLoops[int64]()),
		elem.Combine(subLoops[int8]()), elem.Combine(subLoops[int16]()), elem.Combine(subLoops[uint8]()), elem.Combine(subLoops[uint16]()), elem.Combine(subLoops[uint32]()), elem.Combine(subLoops[uint64]()))
}

func buildMul(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	if dt == exec.Float32 {
		return chained(b, mulFloats[float32]()), nil
	}
	return byNumber(dt, nil, elem.SliceCombine(mulFloats[float64]()), elem.Combine(mulLoops[int32]()), elem.Combine(mulLoops[int64]()),
		elem.Combine(mulLoops[int8]()), elem.Combine(mulLoops[int16]()), elem.Combine(mulLoops[uint8]()), elem.Combine(mulLoops[uint16]()), elem.Combine(mulLoops[uint32]()), elem.Combine(mulLoops[uint64]()))
}

func buildMaximum(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	if dt == exec.Float32 {
		return chained(b, largerLoops[float32]()), nil
	}
	return byNumber(dt, nil, elem.SliceCombine(largerLoops[float64]()), elem.Combine(elem.LoopsOf(elem.Larger[int32])), elem.Combine(elem.LoopsOf(elem.Larger[int64])),
		elem.Combine(elem.LoopsOf(elem.Larger[int8])), elem.Combine(elem.LoopsOf(elem.Larger[int16])), elem.Combine(elem.LoopsOf(elem.Larger[uint8])), elem.Combine(elem.LoopsOf(elem.Larger[uint16])), elem.Combine(elem.LoopsOf(elem.Larger[uint32])), elem.Combine(elem.LoopsOf(elem.Larger[uint64])))
}

func buildMinimum(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("T")
	if dt == exec.Float32 {
		return chained(b, smallerLoops[float32]()), nil
	}
	return byNumber(dt, nil, elem.SliceCombine(smallerLoops[float64]()), elem.Combine(elem.LoopsOf(elem.Smaller[int32])), elem.Combine(elem.LoopsOf(elem.Smaller[int64])),
		elem.Combine(elem.LoopsOf(elem.Smaller[int8])), elem.Combine(elem.LoopsOf(elem.Smaller[int16])), elem.Combine(elem.LoopsOf(elem.Smaller[uint8])), elem.Combine(elem.LoopsOf(elem.Smaller[uint16])), elem.Combine(elem.LoopsOf(elem.Smaller[uint32])), elem.Combine(elem.LoopsOf(elem.Smaller[uint64])))
}

func squaredDifference[T exec.Integer](x, y T) T { return (x - y) * (x - y) }

func buildSquaredDifference(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), chained(b, squaredDifferences[float32]()), elem.SliceCombine(squaredDifferences[float64]()),
		elem.Combine(elem.LoopsOf(squaredDifference[int32])), elem.Combine(elem.LoopsOf(squaredDifference[int64])))
}

func buildAddN(b *exec.OpConstruction) (exec.Kernel, error) {
	if b.DType("T") == exec.Variant {
		return variant.AddLists, nil
	}
	b.Elementwise(&exec.Elements{Vv: vec.Add[float32], Sums: true})
	return byNumber(b.DType("T"), addN[float32], addN[float64], addN[int32], addN[int64],
		addN[int8], addN[int16], addN[uint8], addN[uint16], addN[uint32], addN[uint64])
}

func addN[T exec.Arithmetic](c *exec.KernelContext) error {
	if c.NumInputs() == 0 {
		return c.Invalid("no inputs")
	}
	first := 0
	for c.Added(first) {
		first++
	}
	x := c.In(first)
	y := c.OutOver(0, first)
	ys := exec.Elems[T](y)
	whole := true // x is the sum
	for i := range c.NumInputs() {
		z := c.In(i)
		if !exec.SameShape(z.Shape, x.Shape) {
			return c.Invalid("input %d has the shape %s, input %d %s", i, exec.ShapeString(z.Shape), first, exec.ShapeString(x.Shape))
		}
		if i == first || c.Added(i) {
			continue
		}
		elem.AddShared(c, ys, exec.Elems[T](x), exec.Elems[T](z))
		x, whole = y, false
	}
	if whole {
		copy(ys, exec.Elems[T](x))
	}
	return nil
}

func buildClip(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByType(b.DType("T"), clip[float32], clip[float64], clip[int32], clip[int64])
}

func clip[T exec.Number](c *exec.KernelContext) error {
	x, lo, hi := c.In(0), c.In(1), c.In(2)
	for _, t := range []*exec.Tensor{lo, hi} {
		if len(t.Shape) != 0 && !exec.SameShape(t.Shape, x.Shape) {
			return c.Invalid("a bound has the shape %s, the values %s", exec.ShapeString(t.Shape), exec.ShapeString(x.Shape))
		}
	}
	y := exec.Elems[T](c.OutLike(0, x.DType, x))
	l, h := exec.Elems[T](lo), exec.Elems[T](hi)
	if len(l) == 1 && len(h) == 1 {
		clipAll(y, exec.Elems[T](x), l[0], h[0])
		return nil
	}
	for i, v := range exec.Elems[T](x) {
		y[i] = clipped(v, l[i%len(l)], h[i%len(h)])
	}
	return nil
}

func clipAll[T exec.Number](y, x []T, low, high T) {
	for i, v := range x {
		y[i] = clipped(v, low, high)
	}
}

// clipped keeps NaN, and does not look at a bound that is NaN.
func clipped[T exec.Number](v, low, high T) T {
	if high < v {
		v = high
	}
	if v < low {
		v = low
	}
	return v
}

func cross[T exec.Float](c *exec.KernelContext) error {
	x, y := c.In(0), c.In(1)
	if !exec.SameShape(x.Shape, y.Shape) || len(x.Shape) == 0 || x.Dim(-1) != 3 {
		return c.Invalid("cross products need two tensors of vectors of 3, not %s and %s", x.Describe(), y.Describe())
	}
	a, b, d := exec.Elems[T](x), exec.Elems[T](y), exec.Elems[T](c.OutLike(0, x.DType, x))
	for i := 0; i+2 < len(d); i += 3 {
		d[i] = a[i+1]*b[i+2] - a[i+2]*b[i+1]
		d[i+1] = a[i+2]*b[i] - a[i]*b[i+2]
		d[i+2] = a[i]*b[i+1] - a[i+1]*b[i]
	}
	return nil
}

// chained is the kernel of an operation on float32s that may be part of a chain.
func chained(b *exec.OpConstruction, f *elem.Loops[float32, float32]) exec.Kernel {
	b.Elementwise(elem.Elements(f))
	return elem.SliceCombine(f)
}

func addFloats[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{Vv: vec.Add[T], Vs: vec.AddScalar[T], Sv: func(d []T, x T, y []T) { vec.AddScalar(d, y, x) }}
}

func subFloats[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{Vv: vec.Sub[T], Vs: func(d, x []T, y T) { vec.AddScalar(d, x, -y) }, Sv: func(d []T, x T, y []T) { vec.ScalarSub(d, y, x) }}
}

func mulFloats[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{Vv: vec.Mul[T], Vs: vec.MulScalar[T], Sv: func(d []T, x T, y []T) { vec.MulScalar(d, y, x) }}
}

func divFloats[T exec.Float]() *elem.Loops[T, T] {
	return &elem.Loops[T, T]{Vv: vec.Div[T], Vs: vec.DivScalar[T], Sv: func(d []T, x T, y []T) { vec.ScalarDiv(d, y, x) }}
}

func squaredDifferences[T exec.Float]() *elem.Loops[T, T] {
	away := func(d, x []T, y T) {
		vec.AddScalar(d, x, -y)
		vec.Square(d, d)
	}
	return &elem.Loops[T, T]{Vv: vec.SquaredDifference[T], Vs: away, Sv: func(d []T, x T, y []T) { away(d, y, x) }}
}
