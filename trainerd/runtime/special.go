package runtime

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Special functions, and what their gradients need.
var _ = register(opTable{
	"Digamma":   floatUnary(mathext.Digamma),
	"Ndtri":     floatUnary(ndtri),
	"BesselI0":  floatUnary(func(x float64) float64 { return besselI(x, 0) * math.Exp(math.Abs(x)) }),
	"BesselI1":  floatUnary(func(x float64) float64 { return besselI(x, 1) * math.Exp(math.Abs(x)) }),
	"BesselI0e": floatUnary(func(x float64) float64 { return besselI(x, 0) }),
	"BesselI1e": floatUnary(func(x float64) float64 { return besselI(x, 1) }),
	"Zeta":      floatBinary(zeta),
	"Polygamma": floatBinary(polygamma),
	"Igamma":    floatBinary(func(a, x float64) float64 { return gammaInc(a, x, mathext.GammaIncReg) }),
	"Igammac":   floatBinary(func(a, x float64) float64 { return gammaInc(a, x, mathext.GammaIncRegComp) }),
	"NextAfter": {in: "T T", types: floats, build: buildNextAfter},
})

// ndtri is the quantile of the normal distribution.
func ndtri(p float64) float64 {
	if !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	return mathext.NormalQuantile(p)
}

// zeta is the Hurwitz zeta function.
func zeta(x, q float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	if x < 1 || q <= 0 && math.Floor(q) != q && math.Floor(x) != x {
		return math.NaN()
	}
	if q <= 0 && math.Floor(q) == q {
		return math.Inf(1)
	}
	return mathext.Zeta(x, q)
}

// polygamma is the n-th derivative of the digamma function.
func polygamma(n, x float64) float64 {
	switch {
	case n < 0 || n != math.Floor(n):
		return math.NaN()
	case n == 0:
		return mathext.Digamma(x)
	}
	v := math.Gamma(n+1) * zeta(n+1, x)
	if math.Mod(n, 2) == 0 {
		return -v
	}
	return v
}

// gammaInc guards f against arguments that it refuses.
func gammaInc(a, x float64, f func(a, x float64) float64) float64 {
	if !(a > 0) || !(x >= 0) || math.IsInf(a, 0) || math.IsInf(x, 0) {
		return math.NaN()
	}
	return f(a, x)
}

// besselI is the modified Bessel function of the first kind of order 0 or 1,
// scaled by exp(-|x|): its power series for small x, Hankel's expansion beyond.
func besselI(x float64, order int) float64 {
	a := math.Abs(x)
	v := besselLarge(a, order)
	if a < 30 {
		v = besselSmall(a, order) * math.Exp(-a)
	}
	if order == 1 && x < 0 {
		return -v
	}
	return v
}

func besselSmall(a float64, order int) float64 {
	term := 1.0
	if order == 1 {
		term = a / 2
	}
	sum := term
	for k := 1.0; term > sum*1e-17; k++ {
		term *= a * a / 4 / (k * (k + float64(order)))
		sum += term
	}
	return sum
}

func besselLarge(a float64, order int) float64 {
	mu := float64(4 * order * order)
	term, sum := 1.0, 1.0
	for k := 1.0; k < 20; k++ {
		term *= -(mu - (2*k-1)*(2*k-1)) / (k * 8 * a)
		sum += term
	}
	return sum / math.Sqrt(2*math.Pi*a)
}

func buildNextAfter(b *builder) (kernel, error) {
	return byFloat(b.dtype("T", tNone), combine(loopsOf(math.Nextafter32)), combine(loopsOf(math.Nextafter)))
}
