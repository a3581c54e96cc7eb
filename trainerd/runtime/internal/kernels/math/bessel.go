package math

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Bessel functions, and integrals that have no other name.
var besselOps = exec.OpTable{
	"BesselJ0":  floatUnary(beforeInfinity(math.J0)),
	"BesselJ1":  floatUnary(beforeInfinity(math.J1)),
	"BesselY0":  floatUnary(besselY(math.Y0)),
	"BesselY1":  floatUnary(besselY(math.Y1)),
	"BesselK0":  floatUnary(func(x float64) float64 { return besselK(x, 0) * math.Exp(-x) }),
	"BesselK1":  floatUnary(func(x float64) float64 { return besselK(x, 1) * math.Exp(-x) }),
	"BesselK0e": floatUnary(func(x float64) float64 { return besselK(x, 0) }),
	"BesselK1e": floatUnary(func(x float64) float64 { return besselK(x, 1) }),

	"Dawsn":      floatUnary(dawson),
	"Expint":     floatUnary(beforeInfinity(expint)),
	"FresnelCos": floatUnary(func(x float64) float64 { return fresnel(x, 1) }),
	"FresnelSin": floatUnary(func(x float64) float64 { return fresnel(x, 3) }),
	"Spence":     floatUnary(beforeInfinity(spence)),
}

// beforeInfinity is f where TensorFlow's function has no value at infinity.
func beforeInfinity(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if math.IsInf(x, 0) {
			return math.NaN()
		}
		return f(x)
	}
}

// besselY is f, which is minus infinity left of zero in TensorFlow.
func besselY(f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if x <= 0 {
			return math.Inf(-1)
		}
		return beforeInfinity(f)(x)
	}
}

// besselK is exp(x) times the modified Bessel function of the second kind: the integral over t
// of exp(-x*(cosh(t)-1))*cosh(order*t) by the trapezoid rule, whose error vanishes
// exponentially, as the function and all its derivatives do at the ends.
func besselK(x float64, order float64) float64 {
	switch {
	case x <= 0:
		return math.Inf(1)
	case math.IsNaN(x) || math.IsInf(x, 1):
		return 1 / x
	}
	const last = 750 // exp of minus this is zero
	end := math.Acosh(1 + last/x)
	const steps = 400
	h := end / steps
	sum := 0.5
	for i := 1; i <= steps; i++ {
		half := math.Sinh(float64(i) * h / 2)
		sum += math.Exp(-2*x*half*half) * math.Cosh(order*float64(i)*h)
	}
	return sum * h
}

// dawson is exp(-x*x) times the integral of exp(t*t) up to x (Rybicki 1989).
func dawson(x float64) float64 {
	const h, terms, small = 0.2, 25, 0.2
	if math.Abs(x) < small {
		sum, term := x, x
		for k := 1.; k < 12; k++ {
			term *= -2 * x * x / (2*k + 1)
			sum += term
		}
		return sum
	}
	if math.IsInf(x, 0) {
		return math.Copysign(0, x)
	}
	if math.Abs(x) > 1e8 {
		return 0.5 / x
	}
	even := 2 * math.Round(0.5*math.Abs(x)/h)
	from := math.Abs(x) - even*h
	sum := 0.0
	for k := -2*terms + 1; k < 2*terms; k += 2 {
		d := from - float64(k)*h
		sum += math.Exp(-d*d) / (even + float64(k))
	}
	return math.Copysign(sum/math.Sqrt(math.Pi), x)
}

// expint is the exponential integral Ei.
func expint(x float64) float64 {
	const euler = 0.57721566490153286061
	switch {
	case math.IsNaN(x) || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x < 40:
		sum, term := 0.0, 1.0
		for k := 1.; term > 1e-17*sum || k < 4; k++ {
			term *= x / k
			sum += term / k
		}
		return euler + math.Log(x) + sum
	}
	sum, term := 1.0, 1.0
	for k := 1.; k < x && term > 1e-17; k++ {
		term *= k / x
		sum += term
	}
	return math.Exp(x-math.Log(x)) * sum
}

// fresnel is the integral of the cosine (power 1) or the sine (power 3) of t*t*pi/2 up to x.
func fresnel(x float64, power int) float64 {
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return x
	case a > 4e8:
		return math.Copysign(0.5, x)
	case a < 3:
		u := math.Pi / 2 * x * x
		term, sum := x, 0.0 // of both series in turns
		if power == 3 {
			term *= u
		}
		for k := power / 2; k < 80; k += 2 {
			sum += term / float64(2*k+1)
			term *= -u * u / float64((k+1)*(k+2))
		}
		return sum
	}
	f, g := fresnelTails(math.Abs(x))
	sin, cos := math.Sincos(math.Pi / 2 * math.Mod(x*x, 4))
	v := 0.5 + f*sin - g*cos
	if power == 3 {
		v = 0.5 - f*cos - g*sin
	}
	return math.Copysign(v, x)
}

// fresnelTails are the auxiliary functions for an x of 3 and more: the integrals over t of
// exp(-x*x*t*pi/2)/(1+t*t), over the square root of t or times it.
func fresnelTails(x float64) (f, g float64) {
	const h, steps = 0.05, 160
	for i := range steps {
		s := (float64(i) + 0.5) * h // the square root of the variable, so that both are smooth
		e := math.Exp(-math.Pi/2*s*s) / (1 + s*s*s*s/(x*x*x*x))
		f += e
		g += s * s * e
	}
	scale := math.Sqrt2 / math.Pi * h / x
	return f * scale, g * scale / (x * x)
}

// spence is the dilogarithm of 1-x.
func spence(x float64) float64 {
	const sixth = math.Pi * math.Pi / 6
	switch {
	case !(x >= 0):
		return math.NaN()
	case x == 0:
		return sixth
	case x > 1.5:
		log := math.Log(x)
		return -0.5*log*log - spence(1/x)
	case x < 0.5:
		return sixth - math.Log(x)*math.Log1p(-x) - spence(1-x)
	}
	sum, power, w := 0.0, 1.0, 1-x
	for k := 1.; k < 60; k++ {
		power *= w
		sum += power / (k * k)
	}
	return sum
}
