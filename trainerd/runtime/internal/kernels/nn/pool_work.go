package nn

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// poolWork is a pooling or its gradient, shared between processors by images.
// Lines of pixels or rows of channels are computed at a time, without branches that
// depend on the values.
type poolWork[T exec.Number] struct {
	pass           poolPass
	g              geometry
	images, pooled []T // inputs or results
	grads          []T // of the images, which need not be zero before
	memory         []T // a line of the images for each processor
}

// poolPass is what a poolWork computes.
type poolPass int

const (
	largestUnder poolPass = iota
	passToLargest
	meanUnder
	passToAll
)

// poolView is the pixels under a window: at is the first element of the first.
type poolView struct{ at, rows, cols, line int }

// runPool does the work and lets go of the tensors.
func runPool[T exec.Number](c *exec.KernelContext, work poolWork[T]) {
	w := exec.InFrame[poolWork[T]](c)
	*w = work
	parts := min(exec.MaxParts, w.g.batch, runtime.GOMAXPROCS(0))
	if w.g.batch*w.g.rows*w.g.column < elem.ParallelElements {
		parts = 1
	}
	w.memory = exec.Scratch[T](c, exec.ScratchA, parts*w.g.w.in*w.g.cin)
	parallel.Run(parts, w)
	*w = poolWork[T]{}
}

// Part implements [parallel.Job].
func (w *poolWork[T]) Part(i, n int) {
	g := &w.g
	size := g.w.in * g.cin
	from, to := parallel.Span(g.batch, 1, i, n)
	for n := from; n < to; n++ {
		if w.grads != nil {
			clear(w.grads[n*g.h.in*size : (n+1)*g.h.in*size])
		}
		for oh := range g.h.out {
			switch w.pass {
			case largestUnder, meanUnder:
				w.line(w.memory[i*size:(i+1)*size], n, oh)
			case passToLargest, passToAll:
				w.windows(n, oh)
			}
		}
	}
}

// line pools a line of windows: first the lines of pixels that they are over, then
// the pixels of each.
func (w *poolWork[T]) line(strip []T, n, oh int) {
	g := &w.g
	lo, hi, base := g.h.span(oh)
	for r := lo; r < hi; r++ {
		line := w.images[(n*g.h.in+base+r)*len(strip):][:len(strip)]
		if r == lo {
			copy(strip, line)
		} else {
			w.merge(strip, line)
		}
	}
	for ow := range g.w.out {
		wlo, whi, wbase := g.w.span(ow)
		to := w.pooled[((n*g.h.out+oh)*g.w.out+ow)*g.cin:][:g.cin]
		pixels := max(0, hi-lo) * max(0, whi-wlo)
		if pixels == 0 {
			w.none(to)
		}
		for k := wlo; k < whi && pixels > 0; k++ {
			from := strip[(wbase+k)*g.cin:][:g.cin]
			if k == wlo {
				copy(to, from)
			} else {
				w.merge(to, from)
			}
		}
		if w.pass == meanUnder {
			divideAll(to, to, pixels)
		}
	}
}

// merge adds x to d, or takes what is larger.
func (w *poolWork[T]) merge(d, x []T) {
	if w.pass == meanUnder {
		elem.AddTo(d, x)
	} else {
		largestOf(d, x)
	}
}

// none is what merging nothing gives.
func (w *poolWork[T]) none(d []T) {
	clear(d)
	if w.pass == largestUnder {
		least := leastOf[T]()
		for i := range d {
			d[i] = least
		}
	}
}

// largestOf sets d to x where that is larger or no number.
func largestOf[T exec.Number](d, x []T) {
	switch d := any(d).(type) {
	case []float32:
		vec.Largest(d, any(x).([]float32))
		return
	case []float64:
		vec.Largest(d, any(x).([]float64))
		return
	}
	for i, v := range x {
		d[i] = max(d[i], v)
	}
}

// windows gives the gradient of a line of windows to the pixels under them.
func (w *poolWork[T]) windows(n, oh int) {
	g := &w.g
	for ow := 0; ow < g.w.out; {
		v, count := w.view(n, oh, ow), 1
		for ow+count < g.w.out && w.alike(ow, ow+count) {
			count++
		}
		out := ((n*g.h.out+oh)*g.w.out + ow) * g.cin
		ow += count
		switch {
		case v.empty():
		case w.pass == passToLargest:
			w.toLargest(out, v, count)
		default:
			w.toAll(out, v, count)
		}
	}
}

// view returns the pixels under a window.
func (w *poolWork[T]) view(n, oh, ow int) poolView {
	g := &w.g
	hlo, hhi, hbase := g.h.span(oh)
	wlo, whi, wbase := g.w.span(ow)
	return poolView{at: ((n*g.h.in+hbase+hlo)*g.w.in + wbase + wlo) * g.cin, rows: hhi - hlo, cols: whi - wlo, line: g.w.in * g.cin}
}

// alike reports whether two windows of a line are as far over the padding.
func (w *poolWork[T]) alike(a, b int) bool {
	lo, hi, _ := w.g.w.span(a)
	low, high, _ := w.g.w.span(b)
	return lo == low && hi == high
}

// empty reports whether a window is over the padding alone.
func (v poolView) empty() bool { return v.rows <= 0 || v.cols <= 0 }

// poolChannels is how many channels of a window are compared at once.
const poolChannels = 128

// toLargest adds the gradients of neighbouring windows to those of their first largest pixels.
func (w *poolWork[T]) toLargest(out int, v poolView, count int) {
	if v.rows*v.cols <= poolPlaces {
		switch w := any(w).(type) {
		case *poolWork[float32]:
			toLargestFloat(w, out, v, count)
			return
		case *poolWork[float64]:
			toLargestFloat(w, out, v, count)
			return
		}
	}
	for k := range count {
		w.toLargestOf(out+k*w.g.cin, v)
		v.at += w.g.w.stride * w.g.cin
	}
}

// toLargestOf is toLargest for one window of any type.
func (w *poolWork[T]) toLargestOf(out int, v poolView) {
	n := w.g.cin
	var best [poolChannels]T
	var place [poolChannels]int
	for c := 0; c < n; c += poolChannels {
		m := min(poolChannels, n-c)
		best, place := best[:m], place[:m]
		copy(best, w.images[v.at+c:])
		for i := range place {
			place[i] = v.at + c + i
		}
		for r := range v.rows {
			for k := range v.cols {
				if r+k > 0 {
					at := v.at + r*v.line + k*n + c
					largerOf(best, place, w.images[at:at+m], at)
				}
			}
		}
		for i, g := range w.pooled[out+c : out+c+m] {
			w.grads[place[i]] += g
		}
	}
}

// poolPlaces is the most pixels of a window that are compared by vectors.
const poolPlaces = 64

// toLargestFloat is toLargest by vectors.
func toLargestFloat[T exec.Float](w *poolWork[T], out int, v poolView, count int) {
	var starts [poolPlaces]int
	for i := range v.rows * v.cols {
		starts[i] = i/v.cols*v.line + i%v.cols*w.g.cin
	}
	vec.ToLargest(w.grads[v.at:], w.pooled[out:], w.images[v.at:], starts[:v.rows*v.cols], w.g.cin, w.g.w.stride*w.g.cin, count)
}

// largerOf notes the elements from at on that are larger than the best ones. One
// that is NaN is not, and stays the best where it was the first.
func largerOf[T exec.Number](best []T, place []int, x []T, at int) {
	best, place = best[:len(x)], place[:len(x)]
	for i, v := range x {
		if v != v {
			continue
		}
		p := place[i]
		if v > best[i] {
			p = at + i
		}
		place[i], best[i] = p, max(best[i], v)
	}
}

// toAll adds the gradients of neighbouring windows to those of their pixels in equal parts.
func (w *poolWork[T]) toAll(out int, v poolView, count int) {
	var parts [poolChannels]T
	n := w.g.cin
	for range count {
		for c := 0; c < n; c += poolChannels {
			m := min(poolChannels, n-c)
			divideAll(parts[:m], w.pooled[out+c:out+c+m], v.rows*v.cols)
			for r := range v.rows {
				for k := range v.cols {
					to := w.grads[v.at+r*v.line+k*n+c:][:m]
					elem.AddTo(to, parts[:m])
				}
			}
		}
		out, v.at = out+n, v.at+w.g.w.stride*n
	}
}

func divideAll[T exec.Number](d, x []T, n int) {
	switch d := any(d).(type) {
	case []float32:
		vec.DivScalar(d, any(x).([]float32), float32(n))
		return
	case []float64:
		vec.DivScalar(d, any(x).([]float64), float64(n))
		return
	}
	for i, v := range x {
		d[i] = v / T(n)
	}
}
