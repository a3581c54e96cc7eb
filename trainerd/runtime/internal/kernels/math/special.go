package math

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Special functions, and what their gradients need.
var specialOps = exec.OpTable{
	"Digamma":   floatUnary(digamma),
	"Ndtri":     floatUnary(ndtri),
	"BesselI0":  floatUnary(func(x float64) float64 { return besselI(x, 0) * math.Exp(math.Abs(x)) }),
	"BesselI1":  floatUnary(func(x float64) float64 { return besselI(x, 1) * math.Exp(math.Abs(x)) }),
	"BesselI0e": floatUnary(func(x float64) float64 { return besselI(x, 0) }),
	"BesselI1e": floatUnary(func(x float64) float64 { return besselI(x, 1) }),
	"Zeta":      floatBinary(zeta),
	"Polygamma": floatBinary(polygamma),
	"Igamma":    floatBinary(igamma),
	"Igammac":   floatBinary(func(a, x float64) float64 { return gammaInc(a, x, mathext.GammaIncRegComp) }),
	"Betainc":   {Types: exec.Floats, Build: buildBetainc},
	"NextAfter": {Types: exec.Floats, Build: buildNextAfter},

	"IgammaGradA":     floatBinary(igammaGradA),
	"RandomGammaGrad": floatBinary(randomGammaGrad),
}

// ndtri is the quantile of the normal distribution.
func ndtri(p float64) float64 {
	if !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	return mathext.NormalQuantile(p)
}

// digamma is the derivative of the logarithm of the gamma function: its
// asymptotic series, for larger x, to which it is brought step by step.
func digamma(x float64) float64 {
	const large = 12
	if x < 0 && x != math.Floor(x) {
		_, r := math.Modf(x)
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*r)
	}
	if x <= 0 {
		return math.NaN() // a pole
	}
	if !(x > 0) || x > 1e17 {
		return mathext.Digamma(x) // no number, or nothing but the logarithm
	}
	var v float64
	for ; x < large; x++ {
		v -= 1 / x
	}
	z := 1 / (x * x)
	var series float64
	for _, c := range digammaTerms {
		series = (series + c) * z
	}
	return v + math.Log(x) - 1/(2*x) - series
}

// digammaTerms are the Bernoulli numbers B(2k) over 2k, from the last one used
// to the first.
var digammaTerms = []float64{-3617. / 8160, 1. / 12, -691. / 32760, 1. / 132, -1. / 240, 1. / 252, -1. / 120, 1. / 12}

// zeta is the Hurwitz zeta function.
func zeta(x, q float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	if x > 1 && math.IsInf(q, 1) {
		return 0
	}
	pole := q <= 0 && math.Floor(q) == q
	if pole && (math.IsInf(x, 1) || x >= 1 && math.Mod(x, 2) == 0) {
		return math.Inf(1) // from both sides
	}
	if x < 1 || pole || q <= 0 && math.Floor(x) != x {
		return math.NaN()
	}
	return mathext.Zeta(x, q)
}

// polygamma is the n-th derivative of the digamma function.
func polygamma(n, x float64) float64 {
	switch {
	case n < 0 || n != math.Floor(n):
		return math.NaN()
	case n == 0:
		return digamma(x)
	}
	v := math.Gamma(n+1) * zeta(n+1, x)
	if math.Mod(n, 2) == 0 {
		return -v
	}
	return v
}

// igamma is the lower incomplete gamma function P(a, x), 0 for an x of 0
// whatever a is.
func igamma(a, x float64) float64 {
	if x == 0 {
		return 0
	}
	return gammaInc(a, x, mathext.GammaIncReg)
}

// gammaInc guards f against arguments that it refuses.
func gammaInc(a, x float64, f func(a, x float64) float64) float64 {
	if !(a > 0) || !(x >= 0) {
		return math.NaN()
	}
	if math.IsInf(a, 1) && math.IsInf(x, 1) {
		return 0
	}
	if math.IsInf(a, 1) {
		return f(1, 0) // all is above
	}
	if math.IsInf(x, 1) {
		return f(1, 1e300)
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

func buildNextAfter(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), elem.Combine(elem.LoopsOf(math.Nextafter32)), elem.Combine(elem.LoopsOf(math.Nextafter)))
}

// buildBetainc is the regularized incomplete beta function. Its inputs have one
// shape, or are scalars.
func buildBetainc(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"), betainc[float32], betainc[float64])
}

func betainc[T float32 | float64](c *exec.KernelContext) error {
	var like *exec.Tensor
	at := [3]int{}
	for i := range at {
		x := c.In(i)
		if len(x.Shape) == 0 {
			continue
		}
		if like != nil && !slices.Equal(like.Shape, x.Shape) {
			return c.Invalid("the shapes of the inputs differ: %s and %s", like.Describe(), x.Describe())
		}
		like, at[i] = x, 1
	}
	if like == nil {
		like = c.In(0)
	}
	a, b, x := exec.Elems[T](c.In(0)), exec.Elems[T](c.In(1)), exec.Elems[T](c.In(2))
	d := exec.Elems[T](c.OutLike(0, like.DType, like))
	for i := range d {
		d[i] = T(betaInc(float64(a[i*at[0]]), float64(b[i*at[1]]), float64(x[i*at[2]])))
	}
	return nil
}

// betaInc guards mathext's function against arguments that it refuses.
func betaInc(a, b, x float64) float64 {
	if !(a > 0 && b > 0 && x >= 0 && x <= 1) || math.IsInf(a, 1) || math.IsInf(b, 1) {
		return math.NaN()
	}
	return mathext.RegIncBeta(a, b, x)
}

// igammaGradA is the derivative by a of the regularized lower incomplete gamma
// function P(a, x).
func igammaGradA(a, x float64) float64 {
	if x == 0 {
		return 0
	}
	if !gammaDomain(a, x) {
		return math.NaN()
	}
	lgamma, _ := math.Lgamma(a + 1)
	return math.Exp(a*math.Log(x)-x-lgamma) * gammaSlope(a, x)
}

// randomGammaGrad is the derivative by a of a variate x of the gamma
// distribution, when P(a, x) stays what it is.
func randomGammaGrad(a, x float64) float64 {
	if x == 0 {
		return 0
	}
	if !gammaDomain(a, x) {
		return math.NaN()
	}
	return -x / a * gammaSlope(a, x)
}

func gammaDomain(a, x float64) bool {
	return a > 0 && x > 0 && !math.IsInf(a, 1) && !math.IsInf(x, 1)
}

// gammaSlope is the derivative of P(a, x) by a, divided by x^a e^-x / Γ(a+1).
func gammaSlope(a, x float64) float64 {
	if x > 1 && x > a {
		f, df := gammaFraction(a, x)
		return -a * ((math.Log(x)-digamma(a))*f + df)
	}
	s, ds := gammaSeries(a, x)
	return (math.Log(x)-digamma(a+1))*s + ds
}

// maxGammaTerms bounds the terms of series and fractions: those for a and x of
// some hundred millions, where it is slowest.
const maxGammaTerms = 100_000

// gammaSeries returns Σ xⁿ/((a+1)...(a+n)), by which P(a, x) is x^a e^-x/Γ(a+1)
// times, and its derivative by a.
func gammaSeries(a, x float64) (s, ds float64) {
	const small = 1e-17
	term, dterm := 1.0, 0.0
	s = 1
	for n := 1.0; n < maxGammaTerms; n++ {
		q := x / (a + n)
		dterm = (dterm - term/(a+n)) * q
		term *= q
		s += term
		ds += dterm
		if term <= small*s && -dterm <= small*-ds {
			break
		}
	}
	return s, ds
}

// gammaFraction returns Γ(a, x) divided by x^a e^-x, as Legendre's continued
// fraction, and its derivative by a: Lentz's method with numbers that carry
// their derivatives along.
func gammaFraction(a, x float64) (f, df float64) {
	const small = 1e-16
	b := x + 1 - a // its derivative is -1
	c, dc := math.Inf(1), 0.0
	d := 1 / b
	dd := d * d
	f, slope := d, dd/d // slope is df/f
	for n := 1.0; n < maxGammaTerms; n++ {
		num, dnum := -n*(n-a), n
		b += 2
		if math.IsInf(c, 1) {
			c, dc = b, -1
		} else {
			c, dc = b+num/c, -1+(dnum-num*dc/c)/c
		}
		d, dd = num*d+b, dnum*d+num*dd-1
		d = 1 / d
		dd *= -d * d
		step, dstep := c*d, dc/c+dd/d
		f *= step
		slope += dstep
		if math.Abs(step-1) < small && math.Abs(dstep) <= small*math.Abs(slope) {
			break
		}
	}
	return f, f * slope
}
