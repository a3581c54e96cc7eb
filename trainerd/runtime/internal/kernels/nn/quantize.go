package nn

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Ops that round numbers to those that so many bits tell apart, 0 among them, by one
// scale or by one for each slice along an axis.
var quantizeOps = exec.OpTable{
	"QuantizeAndDequantizeV2":     {Types: exec.Floats, Build: buildQuantize},
	"QuantizeAndDequantizeV3":     {Types: exec.Floats, Build: buildQuantize},
	"QuantizeAndDequantizeV4":     {Types: exec.Floats, Build: buildQuantize},
	"QuantizeAndDequantizeV4Grad": {Types: exec.Floats, Build: buildQuantizeGrad},
}

// quantizing is how numbers are rounded.
type quantizing struct {
	signed, narrow bool
	given          bool // the range is an input, and not that of the numbers
	halfUp         bool
	bits           int // 0: they are an input
	axis           int
}

func buildQuantize(b *exec.OpConstruction) (exec.Kernel, error) {
	q := quantizing{signed: b.Bool("signed_input"), narrow: b.Bool("narrow_range"), given: b.Bool("range_given"), axis: quantizedAxis(b)}
	if b.Op() != "QuantizeAndDequantizeV3" {
		q.bits = int(b.Int("num_bits"))
		if !q.hasBits(q.bits) {
			b.Fail("num_bits is out of range: %d with signed_input %v", q.bits, q.signed)
		}
		switch mode := b.String("round_mode"); mode {
		case "HALF_TO_EVEN":
		case "HALF_UP":
			q.halfUp = true
		default:
			b.Fail("Round mode string must be 'HALF_UP' or 'HALF_TO_EVEN', is '%s'", mode)
		}
	}
	return exec.ByFloat(b.DType("T"), quantize[float32](q), quantize[float64](q))
}

func quantizedAxis(b *exec.OpConstruction) int {
	axis := int(b.Int("axis"))
	if axis < -1 {
		b.Fail("Axis should be at least -1, is %d", axis)
	}
	return axis
}

// hasBits reports whether the numbers may have so many bits.
func (q *quantizing) hasBits(bits int) bool {
	return bits > 0 && (bits < 62 || bits == 62 && !q.signed)
}

// ends are the smallest and the largest whole number.
func (q *quantizing) ends() (low, high int64) {
	switch {
	case !q.signed:
		return 0, 1<<q.bits - 1
	case q.narrow:
		return 1 - 1<<(q.bits-1), 1<<(q.bits-1) - 1
	}
	return -1 << (q.bits - 1), 1<<(q.bits-1) - 1
}

func quantize[T exec.Float](q quantizing) exec.Kernel {
	return func(c *exec.KernelContext) error {
		q := q
		x := c.In(0)
		s, err := slicesAlong(c, x, q.axis)
		if err != nil {
			return err
		}
		if err := q.check(c, s); err != nil {
			return err
		}
		from, to := exec.Elems[T](x), exec.Elems[T](c.OutLike(0, x.DType, x))
		for i := range s.count {
			low, high := rangeOf[T](c, &q, s, i)
			if q.given && s.whole && low > high {
				return c.Invalid("Invalid range: input_min %v > input_max %v", low, high)
			}
			g := scalingOf(&q, low, high)
			s.each(i, func(at, n int) { g.round(&q, to[at:at+n], from[at:at+n]) })
		}
		return nil
	}
}

// check reads the number of bits if it is an input, and checks the range.
func (q *quantizing) check(c *exec.KernelContext, s alongAxis) (err error) {
	if q.bits == 0 {
		if q.bits, err = c.IntScalar(3, "num_bits"); err != nil {
			return err
		}
		if !q.hasBits(q.bits) || len(c.In(3).Shape) > 0 {
			return c.Invalid("num_bits is out of range: %s with signed_input %v", c.In(3).Describe(), q.signed)
		}
	}
	if q.given {
		return rangeGiven(c, 1, s)
	}
	return nil
}

// alongAxis are the slices of a tensor that have a range of their own.
type alongAxis struct {
	count        int // of slices
	outer, inner int // of the pieces of a slice, and of their elements
	whole        bool
}

// slicesAlong returns the slices along an axis, or one, the whole tensor, for axis -1.
func slicesAlong(c *exec.KernelContext, x *exec.Tensor, axis int) (alongAxis, error) {
	if axis < 0 {
		return alongAxis{1, 1, x.NumElements(), true}, nil
	}
	if axis >= len(x.Shape) {
		return alongAxis{}, c.Invalid("Axis requested is larger than input dimensions. Axis: %d Input Dimensions: %d", axis, len(x.Shape))
	}
	return alongAxis{x.Shape[axis], exec.NumElements(x.Shape[:axis]), exec.NumElements(x.Shape[axis+1:]), false}, nil
}

// each calls f with the first element, and the number of elements, of each piece of
// slice i.
func (s alongAxis) each(i int, f func(at, n int)) {
	for o := range s.outer {
		f((o*s.count+i)*s.inner, s.inner)
	}
}

// rangeGiven checks the ends of the ranges of slices, in inputs i and i+1.
func rangeGiven(c *exec.KernelContext, i int, s alongAxis) error {
	low, high := c.In(i), c.In(i+1)
	if !s.hasShape(low) || !s.hasShape(high) {
		return c.Invalid("the range must be two scalars, or two vectors of the size of the axis, %d, not %s and %s", s.count, low.Describe(), high.Describe())
	}
	return nil
}

// hasShape reports whether a tensor has a number for each slice.
func (s alongAxis) hasShape(t *exec.Tensor) bool {
	if s.whole {
		return len(t.Shape) == 0
	}
	return len(t.Shape) == 1 && t.Shape[0] == s.count
}

// rangeOf returns the range of slice i: what the inputs say, or what its numbers are in.
func rangeOf[T exec.Float](c *exec.KernelContext, q *quantizing, s alongAxis, i int) (low, high T) {
	if q.given {
		return exec.Elems[T](c.In(1))[i], exec.Elems[T](c.In(2))[i]
	}
	low, high = T(math.Inf(1)), T(math.Inf(-1))
	x := exec.Elems[T](c.In(0))
	s.each(i, func(at, n int) {
		for _, v := range x[at : at+n] {
			low, high = min(low, v), max(high, v)
		}
	})
	return low, high
}

// scaling is where the rounded numbers lie.
type scaling[T exec.Float] struct {
	low, high      T
	scale, inverse T
}

// scalingOf returns the scaling of a range. It moves one end of that, so that both are on
// the grid.
func scalingOf[T exec.Float](q *quantizing, low, high T) scaling[T] {
	first, last := q.ends()
	fromLow, fromHigh := maxFinite[T](), maxFinite[T]()
	if T(first)*low > 0 {
		fromLow = T(first) / low
	}
	if T(last)*high > 0 {
		fromHigh = T(last) / high
	}
	if fromLow < fromHigh {
		inverse := low / T(first)
		return scaling[T]{low, T(last) * inverse, fromLow, inverse}
	}
	inverse := high / T(last)
	return scaling[T]{T(first) * inverse, high, fromHigh, inverse}
}

// maxFinite returns the largest finite number of a type.
func maxFinite[T exec.Float]() T {
	largest := math.MaxFloat64
	if _, single := any(T(0)).(float32); single {
		largest = math.MaxFloat32
	}
	return T(largest)
}

// round fills d with the numbers of the grid next to those of x.
func (g *scaling[T]) round(q *quantizing, d, x []T) {
	for i, v := range x {
		if q.given {
			v = max(min(v, g.high), g.low)
		}
		v = T(v * g.scale) // not fused with the sum
		if q.halfUp {
			v = T(math.Floor(float64(v + 0.5)))
		} else {
			v = T(math.RoundToEven(float64(v)))
		}
		d[i] = v * g.inverse
	}
}

// buildQuantizeGrad passes on the gradient of numbers within the range. Its ends have
// none.
func buildQuantizeGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	axis := quantizedAxis(b)
	return exec.ByFloat(b.DType("T"), quantizeGrad[float32](axis), quantizeGrad[float64](axis))
}

func quantizeGrad[T exec.Float](axis int) exec.Kernel {
	return func(c *exec.KernelContext) error {
		grad, x := c.In(0), c.In(1)
		if err := sameShape(c, grad, x); err != nil {
			return err
		}
		s, err := slicesAlong(c, x, axis)
		if err != nil {
			return err
		}
		if err := rangeGiven(c, 2, s); err != nil {
			return err
		}
		d, g, v := exec.Elems[T](c.OutLike(0, x.DType, x)), exec.Elems[T](grad), exec.Elems[T](x)
		for i := range s.count {
			low, high := exec.Elems[T](c.In(2))[i], exec.Elems[T](c.In(3))[i]
			s.each(i, func(at, n int) {
				for k := at; k < at+n; k++ {
					d[k] = g[k]
					if !(v[k] >= low && v[k] <= high) {
						d[k] *= 0 // keeps NaN and the sign
					}
				}
			})
		}
		for i := range 2 {
			clear(exec.Elems[T](c.OutLike(1+i, x.DType, c.In(2+i))))
		}
		return nil
	}
}
