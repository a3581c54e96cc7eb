package vec

import "math"

// Loops of activations and normalisations. Like those of arithmetic, they give
// the same bits with and without assembly.

// Square sets d to x*x.
func Square[T Float](d, x []T) {
	x = x[:len(d)]
	for i := squareWide(d, x); i < len(d); i++ {
		d[i] = x[i] * x[i]
	}
}

// Abs sets d to the magnitudes of x.
func Abs[T Float](d, x []T) {
	x = x[:len(d)]
	for i := absWide(d, x, 0); i < len(d); i++ {
		if x[i] < 0 {
			d[i] = 0 - x[i]
		} else {
			d[i] = x[i] + 0 // of minus zero, zero
		}
	}
}

// Sqrt sets d to the square roots of x.
func Sqrt[T Float](d, x []T) {
	x = x[:len(d)]
	for i := sqrtWide(d, x); i < len(d); i++ {
		d[i] = sqrt(x[i])
	}
}

// Rsqrt sets d to one over the square roots of x.
func Rsqrt[T Float](d, x []T) {
	x = x[:len(d)]
	for i := rsqrtWide(d, x); i < len(d); i++ {
		d[i] = 1 / sqrt(x[i])
	}
}

// ScalarSub sets d to s - x.
func ScalarSub[T Float](d, x []T, s T) {
	x = x[:len(d)]
	for i := scalarSubWide(d, x, s); i < len(d); i++ {
		d[i] = s - x[i]
	}
}

// ScalarDiv sets d to s / x.
func ScalarDiv[T Float](d, x []T, s T) {
	x = x[:len(d)]
	for i := scalarDivWide(d, x, s); i < len(d); i++ {
		d[i] = s / x[i]
	}
}

// SquaredDifference sets d to the squares of x - y.
func SquaredDifference[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := squaredDifferenceWide(d, x, y); i < len(d); i++ {
		d[i] = (x[i] - y[i]) * (x[i] - y[i])
	}
}

// TanhGrad sets d to g times the derivative of tanh, whose value is y.
func TanhGrad[T Float](d, y, g []T) {
	y, g = y[:len(d)], g[:len(d)]
	for i := tanhGradWide(d, y, g); i < len(d); i++ {
		d[i] = g[i] * (1 - T(y[i]*y[i]))
	}
}

// SigmoidGrad sets d to g times the derivative of the logistic function, whose value is y.
func SigmoidGrad[T Float](d, y, g []T) {
	y, g = y[:len(d)], g[:len(d)]
	for i := sigmoidGradWide(d, y, g); i < len(d); i++ {
		d[i] = g[i] * y[i] * (1 - y[i])
	}
}

// LeakyRelu sets d to x where it is above zero, else to x*slope.
func LeakyRelu[T Float](d, x []T, slope T) {
	x = x[:len(d)]
	for i := leakyReluWide(d, x, slope); i < len(d); i++ {
		d[i] = x[i]
		if !(x[i] > 0) {
			d[i] = slope * x[i]
		}
	}
}

// LeakyReluGrad sets d to g where x is above zero, else to g*slope.
func LeakyReluGrad[T Float](d, g, x []T, slope T) {
	g, x = g[:len(d)], x[:len(d)]
	for i := leakyReluGradWide(d, g, x, slope); i < len(d); i++ {
		v := g[i]
		if !(x[i] > 0) {
			v *= slope
		}
		d[i] = v
	}
}

// Normalize sets d to (x-mean)*factor + offset.
func Normalize[T Float](d, x, mean, factor, offset []T) {
	x, mean, factor, offset = x[:len(d)], mean[:len(d)], factor[:len(d)], offset[:len(d)]
	for i := normalizeWide(d, x, mean, factor, offset); i < len(d); i++ {
		d[i] = T((x[i]-mean[i])*factor[i]) + offset[i]
	}
}

// NormalizeGrad sets d to factor*(g - shift - (x-mean)*slope).
func NormalizeGrad[T Float](d, g, x, mean, factor, shift, slope []T) {
	g, x, mean, factor, shift, slope = g[:len(d)], x[:len(d)], mean[:len(d)], factor[:len(d)], shift[:len(d)], slope[:len(d)]
	for i := normalizeGradWide(d, g, x, mean, factor, shift, slope); i < len(d); i++ {
		d[i] = factor[i] * (g[i] - shift[i] - T((x[i]-mean[i])*slope[i]))
	}
}

// Moments adds x - shift to sums, and its square to squares.
func Moments[T Float](sums, squares, x, shift []T) {
	squares, x, shift = squares[:len(sums)], x[:len(sums)], shift[:len(sums)]
	for i := momentsWide(sums, squares, x, shift); i < len(sums); i++ {
		v := x[i] - shift[i]
		sums[i] += v
		squares[i] += T(v * v)
	}
}

// GradMoments adds g to sums, and g*(x-mean) to dots.
func GradMoments[T Float](sums, dots, g, x, mean []T) {
	dots, g, x, mean = dots[:len(sums)], g[:len(sums)], x[:len(sums)], mean[:len(sums)]
	for i := gradMomentsWide(sums, dots, g, x, mean); i < len(sums); i++ {
		sums[i] += g[i]
		dots[i] += T(g[i] * (x[i] - mean[i]))
	}
}

// Floor sets d to x rounded down.
func Floor[T Float](d, x []T) {
	x = x[:len(d)]
	for i := floorWide(d, x); i < len(d); i++ {
		d[i] = T(math.Floor(float64(x[i])))
	}
}

// AddScaled adds x*s to d.
func AddScaled[T Float](d, x []T, s T) {
	x = x[:len(d)]
	for i := addScaledWide(d, x, s); i < len(d); i++ {
		d[i] += T(x[i] * s)
	}
}

// AddProduct adds x*y to d.
func AddProduct[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := addProductWide(d, x, y); i < len(d); i++ {
		d[i] += T(x[i] * y[i])
	}
}

// ClippedRelu sets d to x, to zero where x is below it, and to top where x is
// above that.
func ClippedRelu[T Float](d, x []T, top T) {
	x = x[:len(d)]
	for i := clippedReluWide(d, x, top); i < len(d); i++ {
		switch v := x[i]; {
		case v > top:
			d[i] = top
		case v < 0:
			d[i] = 0
		default:
			d[i] = v
		}
	}
}

// ClippedReluGrad sets d to g where x is between zero and top, else to zero times
// g, as ReluGrad does.
func ClippedReluGrad[T Float](d, g, x []T, top T) {
	g, x = g[:len(d)], x[:len(d)]
	for i := clippedReluGradWide(d, g, x, top, 1); i < len(d); i++ {
		v := g[i]
		if !(x[i] > 0 && x[i] < top) {
			v *= 0
		}
		d[i] = v
	}
}

// Maximum sets d to x where it is above y or no number, else to y.
func Maximum[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := maximumWide(d, x, y); i < len(d); i++ {
		v := y[i]
		if x[i] > v || x[i] != x[i] {
			v = x[i]
		}
		d[i] = v
	}
}

// Minimum sets d to x where it is below y or no number, else to y.
func Minimum[T Float](d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := minimumWide(d, x, y); i < len(d); i++ {
		v := y[i]
		if x[i] < v || x[i] != x[i] {
			v = x[i]
		}
		d[i] = v
	}
}

// Expm1 sets d to exp(x)-1, given u, exp(x), and l, log(u). Where u is what exp(x) is
// rounded to, (u-1)/log(u) is nearly (exp(x)-1)/x; far from zero, what is lost does
// not matter.
func Expm1[T Float](d, x, u, l []T) {
	x, u, l = x[:len(d)], u[:len(d)], l[:len(d)]
	for i := expm1Wide(d, x, u, l, 1, -1); i < len(d); i++ {
		switch rest := u[i] - 1; {
		case x[i] < -1 || x[i] > 1:
			d[i] = rest
		case u[i] == 1:
			d[i] = x[i]
		default:
			d[i] = rest * T(x[i]/l[i])
		}
	}
}

// Log1p sets d to log(1+x), given u, 1+x, and l, log(u). Where u is what 1+x is
// rounded to, log(u)/(u-1) is nearly log(1+x)/x.
func Log1p[T Float](d, x, u, l []T) {
	x, u, l = x[:len(d)], u[:len(d)], l[:len(d)]
	for i := log1pWide(d, x, u, l, 1); i < len(d); i++ {
		switch rest := u[i] - 1; {
		case u[i] == 1:
			d[i] = x[i]
		case rest == x[i]: // nothing is lost; also infinity
			d[i] = l[i]
		default:
			d[i] = l[i] * T(x[i]/rest)
		}
	}
}

// Elu sets d to x*above where it is above zero, else to e*below.
func Elu[T Float](d, x, e []T, above, below T) {
	x, e = x[:len(d)], e[:len(d)]
	for i := eluWide(d, x, e, above, below); i < len(d); i++ {
		v := below * e[i]
		if x[i] > 0 {
			v = above * x[i]
		}
		d[i] = v
	}
}

// EluGrad sets d to g*(y+below) where y is below zero, else to g*above.
func EluGrad[T Float](d, g, y []T, above, below T) {
	g, y = g[:len(d)], y[:len(d)]
	for i := eluGradWide(d, g, y, above, below, 0); i < len(d); i++ {
		v := g[i] * above
		if y[i] < 0 {
			v = g[i] * T(y[i]+below)
		}
		d[i] = v
	}
}

// Sign sets d to 1 where x is above zero, to -1 where it is below, else to zero; what is no
// number stays so.
func Sign[T Float](d, x []T) {
	x = x[:len(d)]
	for i := signWide(d, x, 1, -1, 0); i < len(d); i++ {
		switch v := x[i]; {
		case v > 0:
			d[i] = 1
		case v < 0:
			d[i] = -1
		case v == 0:
			d[i] = 0
		default:
			d[i] = v
		}
	}
}

// Rotate sets x to c*x - s*y, and y to s*x + c*y.
func Rotate[T Float](x, y []T, c, s T) {
	y = y[:len(x)]
	for i := rotateWide(x, y, c, s); i < len(x); i++ {
		x[i], y[i] = T(c*x[i])-T(s*y[i]), T(s*x[i])+T(c*y[i])
	}
}

// SubScaled subtracts x*s + y*t from d.
func SubScaled[T Float](d, x, y []T, s, t T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := subScaledWide(d, x, y, s, t); i < len(d); i++ {
		d[i] -= T(x[i]*s) + T(y[i]*t)
	}
}

// Quantizer is what numbers are rounded by: those beyond low or high become these, and level
// zero is that of low.
type Quantizer[T Float] struct{ Low, High, Inverse, Zero, Scale T }

// Quantize rounds x to levels, multiples of the scale. NaN stays NaN.
func Quantize[T Float](d, x []T, q *Quantizer[T]) {
	x = x[:len(d)]
	for i := quantizeWide(d, x, q); i < len(d); i++ {
		d[i] = q.Round(x[i])
	}
}

// Round is Quantize for one number.
func (q *Quantizer[T]) Round(v T) T {
	if v > q.High {
		v = q.High
	}
	if q.Low > v {
		v = q.Low
	}
	level := T((v-q.Low)*q.Inverse) - q.Zero + 0.5
	return T(math.Floor(float64(level))) * q.Scale
}

// Raise sets d to x unless d is above it: NaN does not stay.
func Raise[T Float](d, x []T) {
	x = x[:len(d)]
	for i := raiseWide(d, x); i < len(d); i++ {
		if !(d[i] > x[i]) {
			d[i] = x[i]
		}
	}
}

// Lower sets d to x unless d is below it.
func Lower[T Float](d, x []T) {
	x = x[:len(d)]
	for i := lowerWide(d, x); i < len(d); i++ {
		if !(d[i] < x[i]) {
			d[i] = x[i]
		}
	}
}

// QuantizeGrad is the gradient of numbers x that are between the bounds of a quantizer; lower
// and higher are what those beyond the bounds give to them. What is nothing is g*0.
func QuantizeGrad[T Float](d, lower, higher, g, x []T, q *Quantizer[T]) {
	lower, higher, g, x = lower[:len(d)], higher[:len(d)], g[:len(d)], x[:len(d)]
	for i := quantizeGradWide(d, lower, higher, g, x, q); i < len(d); i++ {
		var within, below, above T
		v := x[i]
		if q.Low > v {
			below = 1
		}
		if v > q.High {
			above = 1
		}
		if below+above == 0 && v == v {
			within = 1
		}
		d[i], lower[i], higher[i] = g[i]*within, g[i]*below, g[i]*above
	}
}
