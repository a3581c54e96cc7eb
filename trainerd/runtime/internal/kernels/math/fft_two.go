package math

import (
	"math"
	"math/bits"
)

// powerFFT is the Fourier transform of a length that is a power of two, which takes a third
// of the time of one for any length.
type powerFFT struct {
	roots []complex128 // of one, to the powers below half the length
	work  []complex128
}

// newPowerFFT returns nil for other lengths.
func newPowerFFT(n int) *powerFFT {
	if bits.OnesCount(uint(n)) != 1 {
		return nil
	}
	f := &powerFFT{roots: make([]complex128, max(1, n/2)), work: make([]complex128, n)}
	for k := range f.roots {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(n))
		f.roots[k] = complex(cos, -sin)
	}
	return f
}

// transform replaces x by its transform. Each pass halves the length of the transforms and
// puts what it makes in order (Stockham).
func (f *powerFFT) transform(x []complex128) {
	from, to := x, f.work
	for half, width := len(x)/2, 1; half >= 1; half, width = half/2, 2*width {
		for j := range half {
			w := f.roots[j*width]
			a, b := from[j*width:][:width], from[(j+half)*width:][:width]
			sum, rest := to[2*j*width:][:width], to[(2*j+1)*width:][:width]
			for k, v := range a {
				sum[k], rest[k] = v+b[k], w*(v-b[k])
			}
		}
		from, to = to, from
	}
	if len(x) > 0 && &from[0] != &x[0] {
		copy(x, from)
	}
}

// realFFT is the half of the transform of real numbers that says all. Their pairs are the
// complex numbers of a transform of half the length.
type realFFT struct {
	pairs *powerFFT
	roots []complex128
	z     []complex128
}

// newRealFFT returns nil for lengths that are no power of two, or 1.
func newRealFFT(n int) *realFFT {
	whole := newPowerFFT(n)
	if whole == nil || n < 2 {
		return nil
	}
	return &realFFT{newPowerFFT(n / 2), whole.roots, make([]complex128, n/2)}
}

func (f *realFFT) coefficients(d []complex128, x []float64) {
	h := len(f.z)
	for k := range f.z {
		f.z[k] = complex(x[2*k], x[2*k+1])
	}
	f.pairs.transform(f.z)
	for k := 1; k < h; k++ {
		a, b := f.z[k], f.z[h-k]
		even := complex(real(a)+real(b), imag(a)-imag(b)) / 2
		odd := complex(imag(a)+imag(b), real(b)-real(a)) / 2
		d[k] = even + f.roots[k]*odd
	}
	d[0], d[h] = complex(real(f.z[0])+imag(f.z[0]), 0), complex(real(f.z[0])-imag(f.z[0]), 0)
}
