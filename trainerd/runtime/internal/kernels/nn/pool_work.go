package nn

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// poolWork is a pooling or its gradient, shared between processors by images.
// Windows are computed a row of channels at a time, without branches that depend
// on the values.
type poolWork[T exec.Number] struct {
	pass           poolPass
	g              geometry
	images, pooled []T // inputs or results
	grads          []T // of the images
	least          T
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
	if w.g.batch*w.g.rows*w.g.column < elem.ParallelElements {
		w.Part(0, 1)
	} else {
		parallel.Run(min(exec.MaxParts, w.g.batch), w)
	}
	*w = poolWork[T]{}
}

// Part implements [parallel.Job].
func (w *poolWork[T]) Part(i, n int) {
	g := &w.g
	from, to := parallel.Span(g.batch, 1, i, n)
	for n := from; n < to; n++ {
		for oh := range g.h.out {
			hlo, hhi, hbase := g.h.span(oh)
			for ow := range g.w.out {
				wlo, whi, wbase := g.w.span(ow)
				at := ((n*g.h.in+hbase+hlo)*g.w.in + wbase + wlo) * g.cin
				w.window(((n*g.h.out+oh)*g.w.out+ow)*g.cin, poolView{at: at, rows: hhi - hlo, cols: whi - wlo, line: g.w.in * g.cin})
			}
		}
	}
}

// window does one window, whose row of channels in the pooled images begins at out.
func (w *poolWork[T]) window(out int, v poolView) {
	switch w.pass {
	case largestUnder:
		w.largest(out, v)
	case passToLargest:
		w.toLargest(out, v)
	case meanUnder:
		w.mean(out, v)
	case passToAll:
		w.toAll(out, v)
	}
}

// empty reports whether a window is over the padding alone.
func (v poolView) empty() bool { return v.rows <= 0 || v.cols <= 0 }

func (w *poolWork[T]) largest(out int, v poolView) {
	n := w.g.cin
	to := w.pooled[out : out+n]
	if v.empty() {
		for i := range to {
			to[i] = w.least
		}
		return
	}
	copy(to, w.images[v.at:])
	for r := range v.rows {
		for k := range v.cols {
			if r+k == 0 {
				continue
			}
			at := v.at + r*v.line + k*n
			from := w.images[at : at+n]
			for i, x := range from {
				to[i] = max(to[i], x)
			}
		}
	}
}

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
		for i, g := range w.pooled[out+c : out+c+m] {
			w.grads[starts[int(place[i])]+i] += g
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

func (w *poolWork[T]) mean(out int, v poolView) {
	n := w.g.cin
	to := w.pooled[out : out+n]
	clear(to)
	for r := range v.rows {
		for k := range v.cols {
			at := v.at + r*v.line + k*n
			elem.AddTo(to, w.images[at:at+n])
		}
	}
	divideAll(to, to, v.rows*v.cols)
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
	for i, v := range x {
		d[i] = v / T(n)
	}
}
