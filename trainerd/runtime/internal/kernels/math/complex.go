package math

import (
	"math"
	"math/cmplx"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Complex numbers.
var complexOps = exec.OpTable{
	"Complex":    {Types: exec.Floats, Build: buildComplex},
	"Real":       complexPart(func(z complex128) float64 { return real(z) }),
	"Imag":       complexPart(func(z complex128) float64 { return imag(z) }),
	"ComplexAbs": complexParts(cmplx.Abs, absOf),
	"Angle":      complexPart(cmplx.Phase),
	"Conj":       {Types: exec.ComplexTypes | exec.Floats, Build: buildConj},
}

// alsoComplex adds kernels for complex numbers to those of an op.
func alsoComplex(spec exec.OpSpec, c64, c128 exec.Kernel) exec.OpSpec {
	build := spec.Build
	spec.Types |= exec.ComplexTypes
	spec.Build = func(b *exec.OpConstruction) (exec.Kernel, error) {
		switch b.DType("T") {
		case exec.Complex64:
			return c64, nil
		case exec.Complex128:
			return c128, nil
		}
		return build(b)
	}
	return spec
}

// absOf is the absolute value. The squares of parts in single precision are exact in double, and
// within its range.
func absOf(z complex64) float32 {
	re, im := float64(real(z)), float64(imag(z))
	if v := math.Sqrt(re*re + im*im); v == v {
		return float32(v)
	}
	return float32(cmplx.Abs(complex128(z))) // infinite where one part is, and the other no number
}

func addOf[T exec.ComplexNumber](x, y T) T { return x + y }
func subOf[T exec.ComplexNumber](x, y T) T { return x - y }
func mulOf[T exec.ComplexNumber](x, y T) T { return x * y }

// divOf has no infinity for a division by zero, as C++ does not.
func divOf[T exec.ComplexNumber](x, y T) T {
	if y == 0 {
		return T(cmplx.NaN())
	}
	return x / y
}
func negOf[T exec.ComplexNumber](x T) T    { return -x }
func squareOf[T exec.ComplexNumber](x T) T { return x * x }

// expOf is real for what is real, also where it is infinite.
func expOf[T exec.ComplexNumber](x T) T {
	z := complex128(x)
	if imag(z) == 0 {
		return T(complex(math.Exp(real(z)), imag(z)))
	}
	return T(cmplx.Exp(z))
}

func divNoNanOf[T exec.ComplexNumber](x, y T) T {
	if y == 0 {
		return 0
	}
	return x / y
}

func buildComplex(b *exec.OpConstruction) (exec.Kernel, error) {
	return exec.ByFloat(b.DType("T"),
		elem.Combine(elem.LoopsOf(func(x, y float32) complex64 { return complex(x, y) })),
		elem.Combine(elem.LoopsOf(func(x, y float64) complex128 { return complex(x, y) })))
}

// complexPart is an op from complex to real numbers, also of another size.
func complexPart(f func(complex128) float64) exec.OpSpec {
	return complexParts(f, func(z complex64) float32 { return float32(f(complex128(z))) })
}

// complexParts is complexPart with a function of its own for single precision.
func complexParts(f func(complex128) float64, single func(complex64) float32) exec.OpSpec {
	return exec.OpSpec{Types: exec.ComplexTypes, Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		switch to := b.DType("Tout"); {
		case b.DType("T") == exec.Complex64 && to == exec.Float32:
			return elem.Convert(single), nil
		case b.DType("T") == exec.Complex64:
			return elem.Convert(func(z complex64) float64 { return f(complex128(z)) }), nil
		case to == exec.Float32:
			return elem.Convert(func(z complex128) float32 { return float32(f(z)) }), nil
		}
		return elem.Convert(f), nil
	}}
}

func buildConj(b *exec.OpConstruction) (exec.Kernel, error) {
	switch b.DType("T") {
	case exec.Complex64:
		return elem.Unary(elem.Conj[complex64]), nil
	case exec.Complex128:
		return elem.Unary(elem.Conj[complex128]), nil
	}
	return b.PassOn()
}
