package math

import (
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Fourier transforms.
var fourierOps = exec.OpTable{
	"FFT": fourierOp(1, false), "FFT2D": fourierOp(2, false), "FFT3D": fourierOp(3, false),
	"IFFT": fourierOp(1, true), "IFFT2D": fourierOp(2, true), "IFFT3D": fourierOp(3, true),
	"RFFT": realFourier(1), "RFFT2D": realFourier(2), "RFFT3D": realFourier(3),
	"IRFFT": inverseRealFourier(1), "IRFFT2D": inverseRealFourier(2), "IRFFT3D": inverseRealFourier(3),
}

// lattice is a complex tensor in double precision.
type lattice struct {
	shape []int
	data  []complex128
}

func latticeOf(c *exec.KernelContext, t *exec.Tensor) *lattice {
	l := &lattice{shape: append([]int{}, t.Shape...), data: make([]complex128, c.CheckSize(t.Shape, 16))}
	switch t.DType {
	case exec.Complex64:
		for i, z := range exec.Elems[complex64](t) {
			l.data[i] = complex128(z)
		}
	case exec.Complex128:
		copy(l.data, exec.Elems[complex128](t))
	case exec.Float32:
		for i, v := range exec.Elems[float32](t) {
			l.data[i] = complex(float64(v), 0)
		}
	case exec.Bool:
		for i, v := range exec.Elems[bool](t) {
			l.data[i] = complex(elem.OneIf[float64](v), 0)
		}
	default:
		for i := range l.data {
			l.data[i] = complex(elem.RealAt(t, i), 0)
		}
	}
	return l
}

// store makes l an output of type dt.
func storeLattice(c *exec.KernelContext, l *lattice, dt tfpb.DataType) {
	d := c.Out(0, dt, l.shape...)
	switch dt {
	case exec.Complex64:
		storeAs(d, l, func(z complex128) complex64 { return complex64(z) })
	case exec.Complex128:
		copy(exec.Elems[complex128](d), l.data)
	case exec.Float32:
		storeAs(d, l, func(z complex128) float32 { return float32(real(z)) })
	case exec.Float64:
		storeAs(d, l, func(z complex128) float64 { return real(z) })
	}
}

func storeAs[T exec.Element](d *exec.Tensor, l *lattice, as func(z complex128) T) {
	ds := exec.Elems[T](d)
	for i, z := range l.data {
		ds[i] = as(z)
	}
}

// resize cuts or pads a dimension with zeros.
func (l *lattice) resize(axis, n int) *lattice {
	if l.shape[axis] == n {
		return l
	}
	out := &lattice{shape: append([]int{}, l.shape...)}
	out.shape[axis] = n
	out.data = make([]complex128, exec.NumElements(out.shape))
	inner, outer := exec.NumElements(l.shape[axis+1:]), exec.NumElements(l.shape[:axis])
	keep := min(n, l.shape[axis]) * inner
	for o := range outer {
		copy(out.data[o*n*inner:][:keep], l.data[o*l.shape[axis]*inner:][:keep])
	}
	return out
}

// transform applies the Fourier transform along an axis.
func (l *lattice) transform(axis int, inverse bool) {
	n := l.shape[axis]
	if n == 0 || len(l.data) == 0 {
		return
	}
	inner := exec.NumElements(l.shape[axis+1:])
	line, apply := make([]complex128, n), transformOf(n, inverse)
	for at := range len(l.data) / n {
		base := at/inner*inner*n + at%inner
		for i := range line {
			line[i] = l.data[base+i*inner]
		}
		apply(line)
		for i, z := range line {
			if inverse {
				z /= complex(float64(n), 0)
			}
			l.data[base+i*inner] = z
		}
	}
}

// transformOf returns the transform of a length, in place; an inverse one is not divided by
// the length.
func transformOf(n int, inverse bool) func(x []complex128) {
	if f := newPowerFFT(n); f != nil && inverse {
		return func(x []complex128) {
			conjugate(x)
			f.transform(x)
			conjugate(x)
		}
	} else if f != nil {
		return f.transform
	}
	fft := fourier.NewCmplxFFT(n)
	if inverse {
		return func(x []complex128) { fft.Sequence(x, x) }
	}
	return func(x []complex128) { fft.Coefficients(x, x) }
}

func conjugate(x []complex128) {
	for i, z := range x {
		x[i] = complex(real(z), -imag(z))
	}
}

// transformReal is the half of a real signal's transform that says all, of each of its
// lines, cut or filled up with zeros to n elements.
func transformReal[T exec.Float](c *exec.KernelContext, t *exec.Tensor, n int) *lattice {
	last := len(t.Shape) - 1
	size, half := t.Shape[last], n/2+1
	l := &lattice{shape: append(append([]int{}, t.Shape[:last]...), half)}
	l.data = make([]complex128, c.CheckSize(l.shape, 16))
	if size == 0 || n == 0 {
		return l
	}
	line, x := make([]float64, n), exec.Elems[T](t)
	var apply func(d []complex128, line []float64)
	if f := newRealFFT(n); f != nil {
		apply = f.coefficients
	} else {
		fft := fourier.NewFFT(n)
		apply = func(d []complex128, line []float64) { fft.Coefficients(d, line) }
	}
	for at := 0; at < len(x)/size; at++ {
		for i, v := range x[at*size:][:min(size, n)] {
			line[i] = float64(v)
		}
		apply(l.data[at*half:][:half], line)
	}
	return l
}

// transformLast applies the transform along the last rank dimensions.
func (l *lattice) transformLast(rank int, inverse bool) {
	for k := 1; k <= rank; k++ {
		l.transform(len(l.shape)-k, inverse)
	}
}

func fourierOp(rank int, inverse bool) exec.OpSpec {
	return exec.OpSpec{Types: exec.ComplexTypes, TypeAttr: "Tcomplex", Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("Tcomplex")
		return func(c *exec.KernelContext) error {
			if len(c.In(0).Shape) < rank {
				return c.Invalid("%s has fewer than %d dimensions", c.In(0).Describe(), rank)
			}
			l := latticeOf(c, c.In(0))
			l.transformLast(rank, inverse)
			storeLattice(c, l, dt)
			return nil
		}, nil
	}}
}

// fourierLength returns the lengths in input 1.
func fourierLength(c *exec.KernelContext, rank int) ([]int, error) {
	n := append([]int{}, c.IntsOf(0, c.In(1))...)
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

// byFloat is transformReal of input 0.
func byFloat(c *exec.KernelContext, n int) *lattice {
	if x := c.In(0); x.DType == exec.Float64 {
		return transformReal[float64](c, x, n)
	}
	return transformReal[float32](c, c.In(0), n)
}

func realFourier(rank int) exec.OpSpec {
	return exec.OpSpec{Types: exec.Floats, TypeAttr: "Treal", Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("Tcomplex")
		return func(c *exec.KernelContext) error {
			n, err := fourierLength(c, rank)
			if err != nil {
				return err
			}
			if rank == 1 {
				storeLattice(c, byFloat(c, n[0]), dt)
				return nil
			}
			l := latticeOf(c, c.In(0))
			first := len(l.shape) - rank
			for k, v := range n {
				l = l.resize(first+k, v)
				c.CheckSize(l.shape, 16)
			}
			l.transformLast(rank, false)
			storeLattice(c, l.resize(len(l.shape)-1, n[rank-1]/2+1), dt)
			return nil
		}, nil
	}}
}

func inverseRealFourier(rank int) exec.OpSpec {
	return exec.OpSpec{Types: exec.ComplexTypes, TypeAttr: "Tcomplex", Build: func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("Treal")
		return func(c *exec.KernelContext) error {
			n, err := fourierLength(c, rank)
			if err != nil {
				return err
			}
			l := latticeOf(c, c.In(0))
			first := len(l.shape) - rank
			for k, v := range n[:rank-1] {
				l = l.resize(first+k, v)
				l.transform(first+k, true)
			}
			last := len(l.shape) - 1
			c.CheckSize(append(append([]int{}, l.shape[:last]...), n[rank-1]), 16)
			l = l.resize(last, n[rank-1]/2+1).mirror(n[rank-1])
			l.transform(last, true)
			storeLattice(c, l, dt)
			return nil
		}, nil
	}}
}

// mirror widens the last dimension from the half of a spectrum that real
// signals have to the whole.
func (l *lattice) mirror(n int) *lattice {
	last := len(l.shape) - 1
	half := l.shape[last]
	out := l.resize(last, n)
	if n == 0 {
		return out
	}
	for row := 0; row < len(out.data)/n; row++ {
		to, from := out.data[row*n:(row+1)*n], l.data[row*half:(row+1)*half]
		to[0] = complex(real(from[0]), 0)
		for i := n/2 + 1; i < n; i++ {
			to[i] = cmplx.Conj(from[n-i])
		}
		if n%2 == 0 {
			to[n/2] = complex(real(from[n/2]), 0)
		}
	}
	return out
}
