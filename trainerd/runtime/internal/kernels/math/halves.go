package math

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// round16 rounds to a type of 16 bits.
type round16 = exec.Rounding

// The ops on elements that TensorFlow composes of several, on types of 16 bits. The
// formulas are those of its functors; the order of their steps shows in the results.
var unarySteps = map[string]exec.Steps{
	"Sigmoid": eachStep(func(x float32, r round16) float32 {
		e := exp16(x, r)
		if math.IsInf(float64(e), 1) {
			return 1
		}
		return r(e / r(1+e))
	}),
	"Softplus": eachStep(softplus16),
	"Softsign": eachStep(func(x float32, r round16) float32 { return r(x / r(1+elem.Absolute(x))) }),
	"Elu": eachStep(func(x float32, r round16) float32 {
		if x < 0 {
			return r(exp16(x, r) - 1)
		}
		return x
	}),
	"Selu": eachStep(func(x float32, r round16) float32 {
		if x < 0 {
			return r(r(seluAlpha) * r(exp16(x, r)-1))
		}
		return r(r(seluScale) * x)
	}),

	"EluGrad":      eluGradSteps(1, 1),
	"SeluGrad":     eluGradSteps(seluScale, seluAlpha),
	"SoftplusGrad": quotientSteps(func(x float32, r round16) float32 { return r(exp16(-x, r) + 1) }),
	"SoftsignGrad": quotientSteps(func(x float32, r round16) float32 {
		d := r(1 + elem.Absolute(x))
		return r(d * d)
	}),
	"SigmoidGrad":    blockSteps(sigmoidGradSteps),
	"TanhGrad":       blockSteps(tanhGradSteps),
	"SqrtGrad":       gradientSteps(func(y, g float32, r round16) float32 { return r(g * r(0.5/y)) }),
	"RsqrtGrad":      gradientSteps(func(y, g float32, r round16) float32 { return r(r(-0.5*r(g*y)) * r(y*y)) }),
	"InvGrad":        gradientSteps(func(y, g float32, r round16) float32 { return r(-g * r(y*y)) }),
	"ReciprocalGrad": gradientSteps(func(y, g float32, r round16) float32 { return r(-g * r(y*y)) }),
}

var arithmeticSteps = map[string]exec.Steps{
	"SquaredDifference": func(b *exec.OpConstruction, r round16) exec.Kernel {
		return chained(b, squaredDifferences16(r.OfSlices()))
	},
	"Xlogy":   combineSteps(func(x, y float32, r round16) float32 { return r(x * r(float32(math.Log(float64(y))))) }),
	"Xlog1py": combineSteps(func(x, y float32, r round16) float32 { return r(x * r(float32(math.Log1p(float64(y))))) }),
}

var divideSteps = map[string]exec.Steps{
	"FloorDiv":    wholeQuotient(math.Floor),
	"TruncateDiv": wholeQuotient(math.Trunc),
}

// squaredDifferences16 are squares of rounded differences.
func squaredDifferences16(round func(d, x []float32)) *elem.Loops[float32, float32] {
	square := func(d []float32) {
		round(d, d)
		vec.Square(d, d)
	}
	away := func(d, x []float32, y float32) {
		vec.AddScalar(d, x, -y)
		square(d)
	}
	return &elem.Loops[float32, float32]{
		Vv: func(d, x, y []float32) {
			vec.Sub(d, x, y)
			square(d)
		},
		Vs: away,
		Sv: func(d []float32, x float32, y []float32) { away(d, y, x) },
	}
}

// wholeQuotient makes a whole number of a quotient that is rounded already.
func wholeQuotient(whole func(float64) float64) exec.Steps {
	return func(_ *exec.OpConstruction, r round16) exec.Kernel {
		return elem.Combine(elem.LoopsOf(func(x, y float32) float32 { return float32(whole(float64(r(x / y)))) }))
	}
}

// combineSteps is for ops on two inputs that broadcast, which are 0 where the first is.
func combineSteps(f func(x, y float32, r round16) float32) exec.Steps {
	return func(_ *exec.OpConstruction, r round16) exec.Kernel {
		return elem.Combine(elem.LoopsOf(func(x, y float32) float32 {
			if x == 0 {
				return 0
			}
			return f(x, y, r)
		}))
	}
}

func exp16(x float32, r round16) float32 { return r(float32(math.Exp(float64(x)))) }

// isHalf reports whether it is half, not bfloat16, that r rounds to.
func isHalf(r round16) bool { return r(1+1./1024) > 1 }

// softplus16 is linear, or the exponential, where the logarithm would lose all
// bits of the type: beyond 2 + log(epsilon). TensorFlow's epsilon of half is 2^-13.
func softplus16(x float32, r round16) float32 {
	limit := float32(2.84375)
	if isHalf(r) {
		limit = 7.0078125
	}
	switch e := exp16(x, r); {
	case x > limit:
		return x
	case x < -limit:
		return e
	default:
		return r(float32(math.Log1p(float64(e))))
	}
}

// eachStep looks the results up, in chains always.
func eachStep(f func(x float32, r round16) float32) exec.Steps {
	tables := newStepTables(f)
	return func(b *exec.OpConstruction, r round16) exec.Kernel {
		t := tables[isHalf(r)]
		b.Elementwise(&exec.Elements{V: t.look})
		return elem.SliceUnary(func(d, x []float32) { t.way(len(d))(d, x) })
	}
}

// quotientSteps divides a gradient by what a function, which is looked up, makes of x.
func quotientSteps(f func(x float32, r round16) float32) exec.Steps {
	tables := newStepTables(f)
	return func(b *exec.OpConstruction, r round16) exec.Kernel {
		t := tables[isHalf(r)]
		b.Elementwise(&exec.Elements{Vv: func(d, g, x []float32) { quotients(d, g, x, t.look) }})
		return elem.SlicePairwise(func(d, g, x []float32) { quotients(d, g, x, t.way(len(d))) })
	}
}

// quotients divides g by what f makes of x.
func quotients(d, g, x []float32, f func(d, x []float32)) {
	var kept [stepBlock]float32
	for len(d) > 0 {
		n := min(len(d), stepBlock)
		f(kept[:n], x[:n])
		vec.Div(d[:n], g[:n], kept[:n])
		d, g, x = d[n:], g[n:], x[n:]
	}
}

// stepOnes are the gradients of a sum.
var stepOnes = func() (ones [stepBlock]float32) {
	for i := range ones {
		ones[i] = 1
	}
	return ones
}()

// eluGradSteps is g*(y+below) where y is below zero, else g*above, both rounded before.
func eluGradSteps(above, below float32) exec.Steps {
	return func(b *exec.OpConstruction, r round16) exec.Kernel {
		above, below, round := r(above), r(below), r.OfSlices()
		return chainedPairwise(b, func(d, g, y []float32) {
			var kept [stepBlock]float32
			for len(d) > 0 {
				n := min(len(d), stepBlock)
				t := kept[:n]
				vec.EluGrad(t, stepOnes[:n], y[:n], above, below)
				round(t, t)
				vec.Mul(d[:n], g[:n], t)
				d, g, y = d[n:], g[n:], y[n:]
			}
		})
	}
}

// blockSteps is for functions of two slices.
func blockSteps(f func(d, y, g []float32, half bool)) exec.Steps {
	return func(b *exec.OpConstruction, r round16) exec.Kernel {
		half := isHalf(r)
		return chainedPairwise(b, func(d, y, g []float32) { f(d, y, g, half) })
	}
}

// roundAll rounds to a type of 16 bits.
func roundAll(d []float32, half bool) {
	if half {
		vec.RoundHalves(d, d)
	} else {
		vec.RoundBfloat16s(d, d)
	}
}

// stepBlock is how many elements go through all steps at a time. They are kept apart, since d
// may be what is read.
const stepBlock = 256

// tanhGradSteps is g*(1-y*y).
func tanhGradSteps(d, y, g []float32, half bool) {
	var kept [stepBlock]float32
	for len(d) > 0 {
		n := min(len(d), stepBlock)
		t := kept[:n]
		vec.Square(t, y[:n])
		roundAll(t, half)
		vec.ScalarSub(t, t, 1)
		roundAll(t, half)
		vec.Mul(d[:n], g[:n], t)
		d, y, g = d[n:], y[n:], g[n:]
	}
}

// sigmoidGradSteps is g*(y*(1-y)).
func sigmoidGradSteps(d, y, g []float32, half bool) {
	var kept [stepBlock]float32
	for len(d) > 0 {
		n := min(len(d), stepBlock)
		t := kept[:n]
		vec.ScalarSub(t, y[:n], 1)
		roundAll(t, half)
		vec.Mul(t, y[:n], t)
		roundAll(t, half)
		vec.Mul(d[:n], g[:n], t)
		d, y, g = d[n:], y[n:], g[n:]
	}
}

// gradientSteps is for what is 0 where the gradient is, whatever y is.
func gradientSteps(f func(y, g float32, r round16) float32) exec.Steps {
	return func(b *exec.OpConstruction, r round16) exec.Kernel {
		return chainedPairwise(b, func(d, y, g []float32) {
			y, g = y[:len(d)], g[:len(d)]
			for i := range d {
				if g[i] == 0 {
					d[i] = 0
				} else {
					d[i] = f(y[i], g[i], r)
				}
			}
		})
	}
}
