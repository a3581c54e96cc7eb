package math

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// fftKind is what a transform takes and makes.
type fftKind int

const (
	complexLines   fftKind = iota
	realToSpectrum         // to the half of the spectrum that says all
	spectrumToReal
)

// fftWork transforms many lines, shared between processors. A block of lines is turned, so
// that a vector has the same number of several lines. Real lines of even length are taken
// for lines of half as many complex numbers.
type fftWork[T float32 | float64] struct {
	kind         fftKind
	inverse      bool
	from, to     []T // a complex number is two elements
	n            int // numbers of a line, on the side of the real ones
	take, give   int // elements of a line
	inner        int // lines of complex numbers whose numbers are in turn; 1: lines follow each other
	lines, lanes int // lanes: lines at once
	part         int // elements of memory for each processor
	memory       []T
	plans        []*fftPlan[T] // for each processor
	known        map[int][]*fftPlan[T]
}

// fftLanes is how many lines are transformed at once: fewer long ones, which would not stay in
// the second cache.
func fftLanes(n, lines int) int {
	const most, numbers = 32, 1 << 14
	return min(most, lines, max(1, numbers/n))
}

// runFFT does the work and lets go of the tensors.
func runFFT[T float32 | float64](c *exec.KernelContext, work fftWork[T]) {
	if work.n == 0 || work.take == 0 || work.lines == 0 {
		clear(work.to)
		return
	}
	w := exec.InFrame[fftWork[T]](c)
	known := w.known
	*w = work
	w.known = known
	n := w.length()
	w.lanes = fftLanes(n, w.follow())
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0), w.blocks())
	if w.lines*n < elem.ParallelElements {
		parts = 1
	}
	w.plans = w.plansOf(n, parts)
	w.part = w.lanes * (w.loaded() + 4*n)
	w.memory = exec.Scratch[T](c, exec.ScratchA, parts*w.part)
	parallel.Run(parts, w)
	*w = fftWork[T]{known: w.known}
}

// length is that of the complex transforms.
func (w *fftWork[T]) length() int {
	if w.kind != complexLines && w.n%2 == 0 {
		return w.n / 2
	}
	return w.n
}

// loaded is the number of rows of elements that are loaded, or stored.
func (w *fftWork[T]) loaded() int { return max(w.take, w.give, 2*w.length()+2) }

// follow is the number of lines that may be in one block.
func (w *fftWork[T]) follow() int {
	if w.inner > 1 {
		return w.inner
	}
	return w.lines
}

func (w *fftWork[T]) blocks() int {
	return w.lines / w.follow() * ((w.follow() + w.lanes - 1) / w.lanes)
}

// plansOf returns the plans for transforms of a length, one for each processor.
func (w *fftWork[T]) plansOf(n, parts int) []*fftPlan[T] {
	const most = 16 // lengths
	if w.known == nil || w.known[n] == nil && len(w.known) >= most {
		w.known = map[int][]*fftPlan[T]{}
	}
	plans := w.known[n]
	for len(plans) < parts {
		plans = append(plans, newFFTPlan[T](n))
	}
	w.known[n] = plans
	return plans
}

// Part implements [parallel.Job].
func (w *fftWork[T]) Part(i, n int) {
	memory := w.memory[i*w.part : (i+1)*w.part]
	each := (w.follow() + w.lanes - 1) / w.lanes
	from, to := parallel.Span(w.blocks(), 1, i, n)
	for b := from; b < to; b++ {
		first := b % each * w.lanes
		w.block(w.plans[i], memory, b/each, first, min(w.lanes, w.follow()-first))
	}
}

// block transforms some lines that follow each other.
func (w *fftWork[T]) block(p *fftPlan[T], memory []T, outer, first, lanes int) {
	rows, memory := memory[:w.loaded()*lanes], memory[w.loaded()*lanes:]
	w.load(p, rows, outer, first, lanes)
	x := paired(rows, lanes)
	if w.inverse {
		x = x.swapped()
	}
	x = p.transform(x, memory[:2*p.n*lanes], memory[2*p.n*lanes:4*p.n*lanes], lanes)
	if w.inverse {
		x = x.swapped()
	}
	w.store(p, rows, x, outer, first, lanes)
}

// load makes rows of the lines, of real and imaginary parts in turn.
func (w *fftWork[T]) load(p *fftPlan[T], rows []T, outer, first, lanes int) {
	switch {
	case w.inner > 1:
		for k := range w.n {
			line := w.from[2*((outer*w.n+k)*w.inner+first):][:2*lanes]
			re, im := rows[2*k*lanes:][:lanes], rows[(2*k+1)*lanes:][:lanes]
			for l := range re {
				re[l], im[l] = line[2*l], line[2*l+1]
			}
		}
		return
	case w.kind == realToSpectrum && w.n%2 != 0:
		clear(rows)
		for k := range min(w.n, w.take) {
			for l := range lanes {
				rows[2*k*lanes+l] = w.from[(first+l)*w.take+k]
			}
		}
		return
	}
	blas.Transpose(rows, lanes, w.from[first*w.take:(first+lanes)*w.take], lanes, w.take)
	clear(rows[w.take*lanes:])
	if w.kind == realToSpectrum {
		clear(rows[min(w.n, w.take)*lanes:])
	}
	if w.kind != spectrumToReal {
		return
	}
	x := paired(rows, lanes)
	if w.n%2 == 0 {
		p.unmirror(x, lanes)
		return
	}
	clear(x.at(0, lanes).Im)
	for k := 1; k <= w.n/2; k++ {
		copy(x.at(w.n-k, lanes).Re, x.at(k, lanes).Re)
		vec.MulScalar(x.at(w.n-k, lanes).Im, x.at(k, lanes).Im, -1)
	}
}

// store makes lines of the transform x; rows are memory for it.
func (w *fftWork[T]) store(p *fftPlan[T], rows []T, x fftRows[T], outer, first, lanes int) {
	scale := T(1)
	if w.inverse {
		scale = 1 / T(p.n)
	}
	to := paired(rows, lanes)
	switch {
	case w.kind == realToSpectrum && w.n%2 == 0:
		p.mirror(to, x, lanes)
	case w.kind == spectrumToReal && w.n%2 != 0:
		for k := range w.n {
			vec.MulScalar(rows[k*lanes:][:lanes], x.at(k, lanes).Re, scale)
		}
	default:
		for k := range min(p.n, (w.give+1)/2) {
			d, z := to.at(k, lanes), x.at(k, lanes)
			vec.MulScalar(d.Re, z.Re, scale)
			vec.MulScalar(d.Im, z.Im, scale)
		}
	}
	if w.inner == 1 {
		blas.Transpose(w.to[first*w.give:], w.give, rows[:w.give*lanes], w.give, lanes)
		return
	}
	for k := range w.n {
		line, z := w.to[2*((outer*w.n+k)*w.inner+first):][:2*lanes], to.at(k, lanes)
		for l, v := range z.Re {
			line[2*l], line[2*l+1] = v, z.Im[l]
		}
	}
}
