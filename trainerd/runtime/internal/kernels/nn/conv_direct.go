package nn

import (
	"runtime"
	"unsafe"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Convolutions without a column matrix: an image is copied once, with its
// padding, and there a row of the column matrix is what one row of the kernel
// covers, so products read it in place. For a 3 by 3 kernel that is a ninth of
// what a column matrix moves. A kernel must be small enough to stay in the second
// cache.

// firstCache is how many bytes of a filter, or of images, are worked on at once
// so that they stay in the first cache.
const firstCache = 40 << 10

// direct reports whether a convolution by a filter of so many elements is done
// without a column matrix.
func (g *geometry) direct(filter int) bool {
	const largest, shortest = 1 << 18, 3
	return filter <= largest && g.w.kernel*g.cin >= shortest && !g.pointwise() && g.h.dilation == 1 && g.w.dilation == 1 && g.rows > 0 && g.batch > 0
}

// canvas is an image with a border of zeros, of h by w pixels.
type canvas struct{ h, w, top, left int }

func (v canvas) elements(channels int) int { return v.h * v.w * channels }

// paint puts an image of h by w pixels of n elements on the canvas. What lies
// outside is cut off.
func paint[T float32 | float64](v canvas, dst, image []T, h, w, n int) {
	from, to := max(0, -v.left), min(w, v.w-v.left)
	line := v.w * n
	for y := range v.h {
		row := dst[y*line : (y+1)*line]
		if y < v.top || y-v.top >= h || from >= to {
			clear(row)
			continue
		}
		at := (v.left + from) * n
		clear(row[:at])
		done := at + copy(row[at:], image[((y-v.top)*w+from)*n:((y-v.top)*w+to)*n])
		clear(row[done:])
	}
}

// canvasOf is the canvas that a convolution reads.
func (g *geometry) canvasOf() canvas {
	return canvas{(g.h.out-1)*g.h.stride + g.h.kernel, (g.w.out-1)*g.w.stride + g.w.kernel, g.h.before, g.w.before}
}

// sweep is one pass over the lines of an image's output: the positions of a line
// are the rows of a product, by a filter of so many kernel rows of inner elements.
type sweep struct {
	filter             int // where its panels begin
	rows, inner        int
	lines, count       int // count: positions of a line
	from, line, step   int // in the canvas: the first position, between lines, between positions
	to, toLine, toStep int // the same in the output
}

// directWork is a convolution, or its gradient for the images, shared between
// processors by images.
type directWork[T float32 | float64] struct {
	images, d   []T
	filter      []T // panels of columns, one sweep after the other
	canvas      canvas
	h, w, cin   int // of the images
	n, output   int // channels and elements of an image of the output
	batch, part int // part: elements of memory for each processor
	panel       int // columns of a panel of the filter
	depth       stack
	step        int // elements of the panels for a position along the depth
	memory      []T
	sweeps      []sweep
	multiply    []blas.Direct[T]
}

// panelWidth returns the elements of a row of the panel that begins at column j
// of a matrix of n columns. Products read one panel after the other; the panel
// begins at j times the number of rows.
func panelWidth(panel, j, n int) int {
	return min(panel, (n-j+blas.DirectColumns-1)/blas.DirectColumns*blas.DirectColumns)
}

// panelElements is the memory that panels of a matrix of n columns take.
func panelElements(rows, n int) int {
	return rows * ((n + blas.DirectColumns - 1) / blas.DirectColumns * blas.DirectColumns)
}

// packPanels copies a matrix of n columns into panels.
func packPanels[T float32 | float64](dst, matrix []T, panel, rows, n int) {
	for j := 0; j < n; j += panel {
		width, used := panelWidth(panel, j, n), min(panel, n-j)
		to := dst[j*rows:]
		for l := range rows {
			copy(to[l*width:l*width+used], matrix[l*n+j:])
			clear(to[l*width+used : (l+1)*width])
		}
	}
}

// start gets the memory for the canvases and for panels of so many elements.
func (w *directWork[T]) start(c *exec.KernelContext, panels int) {
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0))
	memory := exec.Scratch[T](c, exec.ScratchA, parts*w.part+panels)
	w.memory, w.filter = memory[:parts*w.part], memory[parts*w.part:]
	for len(w.multiply) < parts {
		w.multiply = append(w.multiply, blas.Direct[T]{})
	}
}

// run does the work and lets go of the tensors.
func (w *directWork[T]) run() {
	parallel.Run(min(w.batch, len(w.memory)/w.part), w)
	*w = directWork[T]{multiply: w.multiply, sweeps: w.sweeps[:0]}
}

// Part implements [parallel.Job].
func (w *directWork[T]) Part(i, n int) {
	memory := w.memory[i*w.part : (i+1)*w.part]
	from, to := parallel.Span(w.batch, 1, i, n)
	size := w.h * w.w * w.cin
	for k := from; k < to; k++ {
		d, done := w.d[k*w.output:(k+1)*w.output], false
		for position := range w.depth.positions() {
			source := w.depth.source(k, position)
			if source < 0 {
				continue
			}
			paint(w.canvas, memory, w.images[source*size:(source+1)*size], w.h, w.w, w.cin)
			for s := range w.sweeps {
				w.image(&w.multiply[i], memory, d, w.filter[position*w.step:], &w.sweeps[s], done)
			}
			done = true
		}
		if !done {
			clear(d)
		}
	}
}

// image makes a sweep over one image, a panel of the filter after the other, or adds it to
// those of other positions along the depth.
func (w *directWork[T]) image(mul *blas.Direct[T], memory, d, filter []T, s *sweep, add bool) {
	if s.rows*s.inner == 0 {
		if !add {
			w.clear(d, s)
		}
		return
	}
	var zero T
	row := w.canvas.w * w.cin
	p := blas.Factors[T]{M: s.count, K: s.inner, RowA: s.step, ColA: 1, RowC: s.toStep, NextA: row}
	for j := 0; j < w.n; j += w.panel {
		p.N, p.RowB = min(w.panel, w.n-j), panelWidth(w.panel, j, w.n)
		p.NextB = s.inner * p.RowB
		panel := filter[s.filter+j*s.rows*s.inner:]
		rows := max(1, firstCache/int(unsafe.Sizeof(zero))/p.NextB)
		for r := 0; r < s.rows; r += rows {
			p.B, p.Segments, p.Add = panel[r*p.NextB:], min(rows, s.rows-r), add || r > 0
			for y := range s.lines {
				p.A, p.C = memory[s.from+y*s.line+r*row:], d[s.to+y*s.toLine+j:]
				mul.Multiply(p)
			}
		}
	}
}

// clear makes the output of a sweep zero.
func (w *directWork[T]) clear(d []T, s *sweep) {
	for y := range s.lines {
		for x := range s.count {
			at := s.to + y*s.toLine + x*s.toStep
			clear(d[at : at+w.n])
		}
	}
}

func directConv[T float32 | float64](c *exec.KernelContext, g *geometry, xs, fs, d []T, cout int) {
	w := exec.InFrame[directWork[T]](c)
	v := g.canvasOf()
	*w = directWork[T]{
		images: xs, d: d, canvas: v, h: g.h.in, w: g.w.in, cin: g.cin, n: cout, output: g.rows * cout, batch: g.batch,
		part: v.elements(g.cin), panel: blas.PanelColumns[T](), multiply: w.multiply, sweeps: w.sweeps, depth: g.d,
	}
	w.sweeps = append(w.sweeps, sweep{
		rows: g.h.kernel, inner: g.w.kernel * g.cin, lines: g.h.out, count: g.w.out,
		line: g.h.stride * v.w * g.cin, step: g.w.stride * g.cin, toLine: g.w.out * cout, toStep: cout,
	})
	if cout <= w.panel && cout%blas.DirectColumns == 0 { // the filter is its only panel
		w.start(c, 0)
		w.filter, w.step = fs, g.column*cout
	} else {
		w.step = panelElements(g.column, cout)
		w.start(c, g.d.positions()*w.step)
		for p := range g.d.positions() {
			packPanels(w.filter[p*w.step:], fs[p*g.column*cout:], w.panel, g.column, cout)
		}
	}
	w.run()
}
