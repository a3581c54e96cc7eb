package math

import (
	"math"
	"math/cmplx"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// complexUnary are functions of complex numbers that are computed in double precision.
var complexUnary = map[string]func(complex128) complex128{
	"Expm1":      func(z complex128) complex128 { return expOf(z) - 1 },
	"Log":        cmplx.Log,
	"Log1p":      func(z complex128) complex128 { return cmplx.Log(1 + z) },
	"Sqrt":       cmplx.Sqrt,
	"Rsqrt":      func(z complex128) complex128 { return divOf(1, cmplx.Sqrt(z)) },
	"Sin":        cmplx.Sin,
	"Cos":        cmplx.Cos,
	"Tan":        cmplx.Tan,
	"Asin":       cmplx.Asin,
	"Acos":       cmplx.Acos,
	"Atan":       arctangent,
	"Sinh":       realWhereReal(math.Sinh, cmplx.Sinh),
	"Cosh":       realWhereReal(math.Cosh, cmplx.Cosh),
	"Tanh":       hyperbolicTangent,
	"Asinh":      cmplx.Asinh,
	"Acosh":      cmplx.Acosh,
	"Atanh":      cmplx.Atanh,
	"Sigmoid":    func(z complex128) complex128 { return divOf(1, 1+expOf(-z)) },
	"Reciprocal": func(z complex128) complex128 { return divOf(1, z) },
	"Inv":        func(z complex128) complex128 { return divOf(1, z) },
	"Sign":       direction,
}

// complexBinary is complexUnary for two numbers.
var complexBinary = map[string]func(x, y complex128) complex128{
	"Pow":               complexPower,
	"Div":               divOf[complex128],
	"SquaredDifference": func(x, y complex128) complex128 { return (x - y) * cmplx.Conj(x-y) },
	"MulNoNan":          func(x, y complex128) complex128 { return complexUnlessZero(y, x*y) },
	"Xdivy":             func(x, y complex128) complex128 { return complexUnlessZero(x, divOf(x, y)) },
	"Xlogy":             func(x, y complex128) complex128 { return complexUnlessZero(x, x*cmplx.Log(y)) },
	"Xlog1py":           func(x, y complex128) complex128 { return complexUnlessZero(x, x*cmplx.Log(1+y)) },
}

// complexGradients are gradients by what a function gave, y, and the gradient dy of that. Some are
// given the conjugate of y by who asks, and some take it themselves.
var complexGradients = map[string]func(y, dy complex128) complex128{
	"SigmoidGrad":    func(y, dy complex128) complex128 { return dy * y * (1 - y) },
	"TanhGrad":       func(y, dy complex128) complex128 { return dy * (1 - y*y) },
	"SqrtGrad":       func(y, dy complex128) complex128 { return complexUnlessZero(dy, divOf(0.5*dy, cmplx.Conj(y))) },
	"RsqrtGrad":      func(y, dy complex128) complex128 { y = cmplx.Conj(y); return -0.5 * (dy * y) * (y * y) },
	"InvGrad":        complexReciprocalGrad,
	"ReciprocalGrad": complexReciprocalGrad,
}

func complexReciprocalGrad(y, dy complex128) complex128 {
	y = cmplx.Conj(y)
	return -y * dy * y
}

func complexUnlessZero(x, v complex128) complex128 {
	if x == 0 {
		return 0
	}
	return v
}

// complexPower is real for what is real, and has for zero what TensorFlow's logarithm of it gives.
func complexPower(x, y complex128) complex128 {
	switch {
	case x == 0 && real(y) > 0:
		return 0
	case x == 0 && real(y) < 0:
		return complex(math.Inf(1), math.NaN())
	case x == 0:
		return complex(math.NaN(), math.NaN())
	case imag(x) == 0 && imag(y) == 0 && real(x) > 0:
		return complex(math.Pow(real(x), real(y)), 0)
	}
	return cmplx.Pow(x, y)
}

// realWhereReal is a function that is f for what is real, also where it is infinite.
func realWhereReal(f func(float64) float64, g func(complex128) complex128) func(complex128) complex128 {
	return func(z complex128) complex128 {
		if imag(z) == 0 {
			return complex(f(real(z)), imag(z))
		}
		return g(z)
	}
}

// hyperbolicTangent is 1 or -1 where the exponentials would be infinite.
func hyperbolicTangent(z complex128) complex128 {
	if x := real(z); math.Abs(x) > 20 {
		return complex(math.Copysign(1, x), math.Copysign(0, imag(z)))
	}
	return cmplx.Tanh(z)
}

// arctangent has the side of the cut, which is on the imaginary axis, that the zero there tells.
func arctangent(z complex128) complex128 {
	w := cmplx.Atan(z)
	if real(z) == 0 && math.Abs(imag(z)) > 1 {
		return complex(math.Copysign(math.Pi/2, real(z)), imag(w))
	}
	return w
}

// direction is a number divided by its absolute value.
func direction(z complex128) complex128 {
	if z == 0 {
		return 0
	}
	return z / complex(cmplx.Abs(z), 0)
}

// narrowed is a function for numbers of single precision.
func narrowed(f func(x, y complex128) complex128) func(x, y complex64) complex64 {
	return func(x, y complex64) complex64 { return complex64(f(complex128(x), complex128(y))) }
}

// withComplex returns a table whose ops, as far as there are functions of complex numbers
// for them, also have kernels for these.
func withComplex(t exec.OpTable) exec.OpTable {
	all := make(exec.OpTable, len(t))
	for name, spec := range t {
		if f, ok := complexUnary[name]; ok {
			single := func(z complex64) complex64 { return complex64(f(complex128(z))) }
			spec = alsoComplex(spec, elem.Unary(single), elem.Unary(f))
		}
		if f, ok := complexBinary[name]; ok {
			spec = alsoComplex(spec, elem.Combine(elem.LoopsOf(narrowed(f))), elem.Combine(elem.LoopsOf(f)))
		}
		if f, ok := complexGradients[name]; ok {
			spec = alsoComplex(spec, pairwise(narrowed(f)), pairwise(f))
		}
		all[name] = spec
	}
	return all
}
