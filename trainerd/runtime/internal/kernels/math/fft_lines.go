package math

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/trainerd/trainerd/internal/vec"
)

// fftRows holds complex numbers of several lines: number k of all lines, one after the
// other, begins at re[k*step] and im[k*step].
type fftRows[T float32 | float64] struct {
	re, im []T
	step   int
}

// paired returns rows of real parts and of imaginary ones in turn.
func paired[T float32 | float64](memory []T, lanes int) fftRows[T] {
	return fftRows[T]{memory, memory[lanes:], 2 * lanes}
}

// parted returns the rows of n real parts, and then those of the imaginary ones.
func parted[T float32 | float64](memory []T, n, lanes int) fftRows[T] {
	return fftRows[T]{memory[:n*lanes], memory[n*lanes : 2*n*lanes], lanes}
}

// at returns numbers from number k on.
func (r fftRows[T]) at(k, elements int) vec.Complex[T] {
	return vec.Complex[T]{Re: r.re[k*r.step:][:elements], Im: r.im[k*r.step:][:elements]}
}

// swapped has real and imaginary parts exchanged: the transform of that, exchanged again,
// is the inverse one times the length.
func (r fftRows[T]) swapped() fftRows[T] { return fftRows[T]{r.im, r.re, r.step} }

// fftPlan is the Fourier transform of a length. It can be used by one goroutine at a time.
type fftPlan[T float32 | float64] struct {
	n     int
	roots []T               // real and imaginary parts of the roots of one of order 2n, up to power n
	any   *fourier.CmplxFFT // for a length that is not a power of two
	line  []complex128
}

func newFFTPlan[T float32 | float64](n int) *fftPlan[T] {
	p := &fftPlan[T]{n: n, roots: make([]T, 2*n+2)}
	for k := range n + 1 {
		sin, cos := math.Sincos(math.Pi * float64(k) / float64(n))
		p.roots[2*k], p.roots[2*k+1] = T(cos), T(-sin)
	}
	if bits.OnesCount(uint(n)) != 1 {
		p.any, p.line = fourier.NewCmplxFFT(n), make([]complex128, n)
	}
	return p
}

// root returns a root of order 2n.
func (p *fftPlan[T]) root(k int) (re, im T) { return p.roots[2*k], p.roots[2*k+1] }

// transform returns the transform of x, which is in one of the memories or, of a single
// number, in x itself.
func (p *fftPlan[T]) transform(x fftRows[T], a, b []T, lanes int) fftRows[T] {
	from, to, next := x, parted(a, p.n, lanes), parted(b, p.n, lanes)
	if p.any != nil {
		p.each(to, from, lanes)
		return to
	}
	// Each pass halves the length of the transforms and puts what it makes in order (Stockham).
	for half, width := p.n/2, 1; half >= 1; half, width = half/2, 2*width {
		for j := range half {
			re, im := p.root(2 * j * width)
			n := width * lanes
			vec.Butterfly(to.at(2*j*width, n), to.at((2*j+1)*width, n), from.at(j*width, n), from.at((j+half)*width, n), re, im)
		}
		from, to, next = to, next, to
	}
	return from
}

// each transforms one line after the other.
func (p *fftPlan[T]) each(to, from fftRows[T], lanes int) {
	for l := range lanes {
		for k := range p.line {
			p.line[k] = complex(float64(from.re[k*from.step+l]), float64(from.im[k*from.step+l]))
		}
		p.any.Coefficients(p.line, p.line)
		for k, z := range p.line {
			to.re[k*to.step+l], to.im[k*to.step+l] = T(real(z)), T(imag(z))
		}
	}
}

// mirror makes the first n/2+1 numbers of a transform of 2n real numbers, in d, of the
// transform z of their pairs.
func (p *fftPlan[T]) mirror(d, z fftRows[T], lanes int) {
	for k := range p.n/2 + 1 {
		re, im := p.root(k)
		vec.Mirror(d.at(k, lanes), d.at(p.n-k, lanes), z.at(k, lanes), z.at((p.n-k)%p.n, lanes), re, im)
	}
}

// unmirror undoes mirror in place; number n is lost.
func (p *fftPlan[T]) unmirror(d fftRows[T], lanes int) {
	clear(d.at(0, lanes).Im)
	clear(d.at(p.n, lanes).Im)
	for k := range p.n/2 + 1 {
		re, im := p.root(k)
		vec.Mirror(d.at(k, lanes), d.at(p.n-k, lanes), d.at(k, lanes), d.at(p.n-k, lanes), -re, im)
	}
}
