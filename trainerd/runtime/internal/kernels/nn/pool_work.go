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
	grads          []T // of the images
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
	hlo, hhi, hbase := g.h.span(oh)
	for ow := range g.w.out {
		wlo, whi, wbase := g.w.span(ow)
		at := ((n*g.h.in+hbase+hlo)*g.w.in + wbase + wlo) * g.cin
		v := poolView{at: at, rows: hhi - hlo, cols: whi - wlo, line: g.w.in * g.cin}
		out := ((n*g.h.out+oh)*g.w.out + ow) * g.cin
		if w.pass == passToLargest {
			w.toLargest(out, v)
		} else {
			w.toAll(out, v)
		}
	}
}

// empty reports whether a window is over the padding alone.
func (v poolView) empty() bool { return v.rows <= 0 || v.cols <= 0 }

// poolChannels is how many channels of a window are compared at once.
const poolChannels = 128

// toLargest adds the gradient of a window to that of its first largest pixel.
func (w *poolWork[T]) toLargest(out int, v poolView) {
	if v.empty() {
		return
	}
	n := w.g.cin
	if n >= wideChannels && v.rows*v.cols <= poolPlaces {
		switch w := any(w).(type) {
		case *poolWork[float32]:
			toLargestFloat(w, out, v)
			return
		case *poolWork[float64]:
			toLargestFloat(w, out, v)
			return
		}
	}
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

// poolPlaces is the most pixels of a window, and wideChannels the fewest channels, that
// are compared by vectors.
const (
	poolPlaces   = 64
	wideChannels = 8
)

// toLargestFloat is toLargest by vectors, which number the pixels of the window in
// elements of their own type.
func toLargestFloat[T exec.Float](w *poolWork[T], out int, v poolView) {
	var best, place [poolChannels]T
	var starts [poolPlaces]int
	n := w.g.cin
	for c := 0; c < n; c += poolChannels {
		m := min(poolChannels, n-c)
		best, place := best[:m], place[:m]
		copy(best, w.images[v.at+c:])
		clear(place)
		pixel := 0
		for r := range v.rows {
			for k := range v.cols {
				at := v.at + r*v.line + k*n + c
				starts[pixel] = at
				if pixel > 0 {
					vec.Larger(best, place, w.images[at:at+m], T(pixel))
				}
				pixel++
			}
		}
		for p, at := range starts[:pixel] {
			vec.AddEqual(w.grads[at:at+m], w.pooled[out+c:], place, T(p))
		}
	}
}

// largerOf notes the elements from at on that are larger than the best ones. One
// that is no number is not, and stays the best where it was the first.
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

// toAll adds a window's gradient to that of its pixels in equal parts.
func (w *poolWork[T]) toAll(out int, v poolView) {
	var parts [poolChannels]T
	n := w.g.cin
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
