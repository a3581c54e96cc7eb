package math

import (
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
	"Atan":       cmplx.Atan,
	"Sinh":       cmplx.Sinh,
	"Cosh":       cmplx.Cosh,
	"Tanh":       cmplx.Tanh,
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
	"Pow":               cmplx.Pow,
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
