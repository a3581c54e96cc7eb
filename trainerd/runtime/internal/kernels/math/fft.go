package math

import (
	"unsafe"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Fourier transforms.
var fourierOps = exec.OpTable{
	"FFT": fourierOp(1, false), "FFT2D": fourierOp(2, false), "FFT3D": fourierOp(3, false),
	"IFFT": fourierOp(1, true), "IFFT2D": fourierOp(2, true), "IFFT3D": fourierOp(3, true),
	"RFFT": realFourier(1), "RFFT2D": realFourier(2), "RFFT3D": realFourier(3),
	"IRFFT": inverseRealFourier(1), "IRFFT2D": inverseRealFourier(2), "IRFFT3D": inverseRealFourier(3),
}

// partsOf returns the real and imaginary parts of a complex tensor in turn, or the elements
// of a real one.
func partsOf[T float32 | float64](t *exec.Tensor) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data)/int(unsafe.Sizeof(zero)))
}

// transformAxis transforms complex numbers along a dimension.
func transformAxis[T float32 | float64](c *exec.KernelContext, to, from []T, shape []int, axis int, inverse bool) {
	n, inner := shape[axis], exec.NumElements(shape[axis+1:])
	w := fftWork[T]{inverse: inverse, from: from, to: to, n: n, take: 2 * n, give: 2 * n, inner: inner}
	if n > 0 {
		w.lines = len(to) / (2 * n)
	}
	runFFT(c, w)
}

func fourierOp(rank int, inverse bool) exec.OpSpec {
	return exec.OpSpec{Types: exec.ComplexTypes, TypeAttr: "Tcomplex", Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		if b.DType("Tcomplex") == exec.Complex128 {
			return func(c *exec.KernelContext) error { return transformComplex[float64](c, rank, inverse) }, nil
		}
		return func(c *exec.KernelContext) error { return transformComplex[float32](c, rank, inverse) }, nil
	}}
}

func transformComplex[T float32 | float64](c *exec.KernelContext, rank int, inverse bool) error {
	x := c.In(0)
	if len(x.Shape) < rank {
		return c.Invalid("%s has fewer than %d dimensions", x.Describe(), rank)
	}
	d := c.OutLike(0, x.DType, x)
	from, to := partsOf[T](x), partsOf[T](d)
	for k := 1; k <= rank; k++ {
		transformAxis(c, to, from, d.Shape, len(d.Shape)-k, inverse)
		from = to
	}
	return nil
}

// fourierLength returns the lengths in input 1.
func fourierLength(c *exec.KernelContext, rank int) ([]int, error) {
	n := c.IntsOf(0, c.In(1))
	if len(n) != rank || len(c.In(1).Shape) != 1 || len(c.In(0).Shape) < rank {
		return nil, c.Invalid("%d lengths for a transform of %s in %d dimensions", len(n), c.In(0).Describe(), rank)
	}
	for _, v := range n {
		if v < 0 {
			return nil, c.Invalid("a transform of length %d", v)
		}
	}
	return n, nil
}

// fourierShape returns, in scratch memory, the shape of input 0 with other numbers in its
// last dimensions.
func fourierShape(c *exec.KernelContext, k int, last []int) []int {
	x := c.In(0).Shape
	shape := append(c.ScratchInts(k, 0), x[:len(x)-len(last)]...)
	shape = append(shape, last...)
	c.KeepInts(k, shape)
	return shape
}

func realFourier(rank int) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, TypeAttr: "Treal", Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		if b.DType("Treal") == exec.Float64 {
			return func(c *exec.KernelContext) error { return toSpectrum[float64](c, rank) }, nil
		}
		return func(c *exec.KernelContext) error { return toSpectrum[float32](c, rank) }, nil
	}}
}

// toSpectrum transforms real numbers along the last dimension, and the half of the spectrum
// that says all along those before it.
func toSpectrum[T float32 | float64](c *exec.KernelContext, rank int) error {
	n, err := fourierLength(c, rank)
	if err != nil {
		return err
	}
	x, last := c.In(0), n[rank-1]
	shape := fourierShape(c, 1, n)
	end := len(shape) - 1
	size := x.Shape[end]
	from := partsOf[T](x)
	if shape[end] = size; !exec.SameShape(shape, x.Shape) {
		from = boxed(c, shape, from, x.Shape, 1)
	}
	shape[end] = last/2 + 1
	d := c.Out(0, complexOf[T](), shape...)
	to := partsOf[T](d)
	runFFT(c, fftWork[T]{kind: realToSpectrum, from: from, to: to, n: last, take: size, give: 2 * shape[end], inner: 1, lines: exec.NumElements(shape[:end])})
	for k := 1; k < rank; k++ {
		transformAxis(c, to, to, d.Shape, end-k, false)
	}
	return nil
}

func inverseRealFourier(rank int) exec.OpSpec {
	return exec.OpSpec{Types: exec.ComplexTypes, TypeAttr: "Tcomplex", Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		if b.DType("Tcomplex") == exec.Complex128 {
			return func(c *exec.KernelContext) error { return fromSpectrum[float64](c, rank) }, nil
		}
		return func(c *exec.KernelContext) error { return fromSpectrum[float32](c, rank) }, nil
	}}
}

// fromSpectrum undoes toSpectrum.
func fromSpectrum[T float32 | float64](c *exec.KernelContext, rank int) error {
	n, err := fourierLength(c, rank)
	if err != nil {
		return err
	}
	x, last := c.In(0), n[rank-1]
	shape := fourierShape(c, 1, n)
	end := len(shape) - 1
	from := partsOf[T](x)
	half := x.Shape[end]
	if rank > 1 {
		shape[end] = half
		box := boxed(c, shape, from, x.Shape, 2)
		for k := 1; k < rank; k++ {
			transformAxis(c, box, box, shape, end-k, true)
		}
		from, shape[end] = box, last
	}
	d := c.Out(0, exec.DTypeOf[T](), shape...)
	runFFT(c, fftWork[T]{kind: spectrumToReal, inverse: true, from: from, to: partsOf[T](d), n: last, take: 2 * half, give: last, inner: 1, lines: exec.NumElements(shape[:end])})
	return nil
}

// complexOf is the type of complex numbers whose parts are T.
func complexOf[T float32 | float64]() tfpb.DataType {
	if exec.DTypeOf[T]() == exec.Float64 {
		return exec.Complex128
	}
	return exec.Complex64
}

// boxed returns, in scratch memory, a tensor that has what it has in common with another one,
// and zeros, whose numbers are so many elements each.
func boxed[T float32 | float64](c *exec.KernelContext, shape []int, x []T, from []int, elements int) []T {
	box := exec.Scratch[T](c, exec.ScratchB, elements*exec.NumElements(shape))
	clear(box)
	copyBox(box, shape, x, from, elements)
	return box
}

// copyBox copies what two tensors have in common, whose numbers are so many elements each.
func copyBox[T float32 | float64](d []T, to []int, x []T, from []int, elements int) {
	if len(to) == 0 {
		copy(d, x)
		return
	}
	if len(to) == 1 {
		copy(d[:min(to[0], from[0])*elements], x)
		return
	}
	row, line := elements*exec.NumElements(to[1:]), elements*exec.NumElements(from[1:])
	for i := range min(to[0], from[0]) {
		copyBox(d[i*row:(i+1)*row], to[1:], x[i*line:(i+1)*line], from[1:], elements)
	}
}
