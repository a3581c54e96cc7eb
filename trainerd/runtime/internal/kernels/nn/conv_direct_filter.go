package nn

import (
	"runtime"
	"unsafe"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// filterWork is the gradient of a filter. A row of the kernel and a panel of its
// columns are a unit: the sum over all lines of all images of a product of
// pixels on the canvas, transposed, and the gradient of the output.
//
// Processors share the images of a small filter, which has a sum for each block
// of images; they share the units of a large one, whose sums would cost more than
// painting the images more than once.
//
// Where the output has few channels, which would leave most lanes of the vectors
// empty, the two factors change places, and the sums are transposed in the end.
type filterWork[T float32 | float64] struct {
	images, grad, d []T
	canvas          canvas
	h, w, cin       int // of the images
	outH, outW      int
	n, ldb          int // channels of the output; the same in the memory that products read
	kh, row, sh, sw int // rows of the kernel, and elements of one
	panel           int
	swapped         bool
	depth           stack
	position        int // along the depth
	batch, group    int // group: images that are worked on at once
	blocks          int // of images; 0: the units are shared
	part            int // elements of memory for each processor
	memory          []T
	partial         []T // a gradient for each block
	multiply        []blas.Direct[T]
}

const (
	// filterBlocks is how many sums the gradient of a small filter is made of,
	// each of its own images, whatever the number of processors.
	filterBlocks = 8
	largeFilter  = 1 << 16 // elements
	groupBytes   = 512 << 10
)

func directFilterGrad[T float32 | float64](c *exec.KernelContext, g *geometry, position int, xs, gs, d []T, cout int) {
	w := exec.InFrame[filterWork[T]](c)
	v := g.canvasOf()
	*w = filterWork[T]{
		images: xs, grad: gs, d: d, canvas: v, h: g.h.in, w: g.w.in, cin: g.cin, outH: g.h.out, outW: g.w.out, n: cout,
		kh: g.h.kernel, row: g.w.kernel * g.cin, sh: g.h.stride, sw: g.w.stride, panel: blas.PanelColumns[T](), batch: g.batch, multiply: w.multiply,
		depth: g.d, position: position,
	}
	w.ldb = (cout + blas.DirectColumns - 1) / blas.DirectColumns * blas.DirectColumns
	images := g.batch
	if len(d) <= largeFilter {
		w.blocks = min(filterBlocks, g.batch)
		images = (g.batch + w.blocks - 1) / w.blocks
		w.swapped = 2*cout <= blas.DirectColumns && w.row >= blas.DirectColumns
	}
	if w.swapped {
		w.ldb = cout
	}
	size := v.elements(g.cin) + g.rows*w.ldb
	var zero T
	w.group = min(images, max(1, groupBytes/int(unsafe.Sizeof(zero))/size))
	w.part = w.group*size + w.panel // products read a little beyond a row of a canvas
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0))
	w.memory = exec.Scratch[T](c, exec.ScratchA, parts*w.part)
	w.partial = exec.Scratch[T](c, exec.ScratchB, w.blocks*len(d))
	for len(w.multiply) < parts {
		w.multiply = append(w.multiply, blas.Direct[T]{})
	}
	w.run()
}

// run does the work, adds up the blocks, and lets go of the tensors.
func (w *filterWork[T]) run() {
	units := w.blocks
	if units == 0 {
		units = w.kh * w.panels()
	}
	parallel.Run(min(units, len(w.memory)/w.part), w)
	for b := 1; b < w.blocks; b++ {
		vec.Add(w.partial[:len(w.d)], w.partial[:len(w.d)], w.partial[b*len(w.d):(b+1)*len(w.d)])
	}
	switch size := w.row * w.n; {
	case w.swapped:
		for at := 0; at < len(w.d); at += size {
			blas.Transpose(w.d[at:at+size], w.n, w.partial[at:], w.n, w.row)
		}
	case w.blocks > 0:
		copy(w.d, w.partial)
	}
	*w = filterWork[T]{multiply: w.multiply}
}

func (w *filterWork[T]) panels() int { return (w.n + w.panel - 1) / w.panel }

// Part implements [parallel.Job].
func (w *filterWork[T]) Part(i, n int) {
	memory := w.memory[i*w.part : (i+1)*w.part]
	units := w.kh * w.panels()
	if w.blocks == 0 {
		from, to := parallel.Span(units, 1, i, n)
		w.accumulate(&w.multiply[i], memory, w.d, [2]int{0, w.batch}, [2]int{from, to})
		return
	}
	from, to := parallel.Span(w.blocks, 1, i, n)
	for b := from; b < to; b++ {
		first, last := parallel.Span(w.batch, 1, b, w.blocks)
		d := w.partial[b*len(w.d) : (b+1)*len(w.d)]
		w.accumulate(&w.multiply[i], memory, d, [2]int{first, last}, [2]int{0, units})
	}
}

// accumulate sets some units of d to their sums over some images.
func (w *filterWork[T]) accumulate(mul *blas.Direct[T], memory, d []T, images, units [2]int) {
	all := w.group * w.canvas.elements(w.cin)
	canvases, grads := memory[:all+w.panel], memory[all+w.panel:]
	for at := images[0]; at < images[1]; at += w.group {
		n := min(w.group, images[1]-at)
		for k := range n {
			x := canvases[k*w.canvas.elements(w.cin) : (k+1)*w.canvas.elements(w.cin)]
			if source := w.depth.source(at+k, w.position); source >= 0 {
				paint(w.canvas, x, w.images[source*w.h*w.w*w.cin:], w.h, w.w, w.cin)
			} else {
				clear(x)
			}
		}
		g := w.gradients(grads, at, n)
		for u := units[0]; u < units[1]; u++ {
			for k := range n {
				w.unit(mul, canvases[k*w.canvas.elements(w.cin):], g[k*w.outH*w.outW*w.ldb:], d, u, at+k > images[0])
			}
		}
	}
}

// gradients returns the output's gradient of n images, with rows that products
// can read.
func (w *filterWork[T]) gradients(memory []T, at, n int) []T {
	size := w.outH * w.outW
	g := w.grad[at*size*w.n : (at+n)*size*w.n]
	if w.ldb == w.n {
		return g
	}
	for i := range n * size {
		copy(memory[i*w.ldb:i*w.ldb+w.n], g[i*w.n:])
		clear(memory[i*w.ldb+w.n : (i+1)*w.ldb])
	}
	return memory
}

// unit adds what one image gives to a unit, or sets the unit to it.
func (w *filterWork[T]) unit(mul *blas.Direct[T], x, g, d []T, u int, add bool) {
	var zero T
	kh, j := u/w.panels(), u%w.panels()*w.panel
	line := w.canvas.w * w.cin
	p := blas.Factors[T]{M: w.row, N: min(w.panel, w.n-j), K: w.outW, RowA: 1, ColA: w.sw * w.cin, RowB: w.ldb, C: d[kh*w.row*w.n+j:], RowC: w.n,
		Add: add, NextA: w.sh * line, NextB: w.outW * w.ldb}
	// As many lines at once as stay in the first cache.
	lines := max(1, firstCache/int(unsafe.Sizeof(zero))/(line+p.N*w.outW))
	if w.swapped {
		p.M, p.N, p.ColA, p.RowB, p.NextA, p.NextB, p.RowC = p.N, p.M, p.RowB, p.ColA, p.NextB, p.NextA, w.row
	}
	for y := 0; y < w.outH; y += lines {
		p.A, p.B = x[(y*w.sh+kh)*line:], g[y*w.outW*w.ldb+j:]
		if w.swapped {
			p.A, p.B = p.B, p.A
		}
		p.Segments = min(lines, w.outH-y)
		mul.Multiply(p)
		p.Add = true
	}
}
