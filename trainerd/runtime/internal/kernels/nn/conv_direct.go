package nn

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Convolutions without a column matrix: an image is copied once, with its
// padding, and there a row of the column matrix is what one row of the kernel
// covers, so products read it in place. For a 3 by 3 kernel that is a ninth of
// what a column matrix moves. A kernel must be small enough to stay in the cache.

// direct reports whether a convolution by a filter of so many elements is done
// without a column matrix.
func (g *geometry) direct(filter int) bool {
	const largest, shortest = 1 << 16, 8
	return filter <= largest && g.w.kernel*g.cin >= shortest && !g.pointwise() && g.h.dilation == 1 && g.w.dilation == 1 && g.rows > 0 && g.batch > 0
}

func (g *geometry) unitStrides() bool { return g.h.stride == 1 && g.w.stride == 1 }

// canvas is an image with a border of zeros, of h by w pixels.
type canvas struct{ h, w, top, left int }

func (v canvas) elements(channels int) int { return v.h * v.w * channels }

// paint puts an image of h by w pixels of n elements on the canvas, each pixel
// of which has step elements. What lies outside is cut off.
func paint[T float32 | float64](v canvas, dst, image []T, h, w, n, step int) {
	clear(dst)
	from, to := max(0, -v.left), min(w, v.w-v.left)
	for y := range v.h {
		if y < v.top || y-v.top >= h || from >= to {
			continue
		}
		row, at := image[((y-v.top)*w+from)*n:((y-v.top)*w+to)*n], (y*v.w+v.left+from)*step
		if step == n {
			copy(dst[at:], row)
			continue
		}
		for i := 0; i < len(row); i += n {
			copy(dst[at:at+n], row[i:i+n])
			at += step
		}
	}
}

// canvasOf is the canvas that a convolution reads.
func (g *geometry) canvasOf() canvas {
	return canvas{(g.h.out-1)*g.h.stride + g.h.kernel, (g.w.out-1)*g.w.stride + g.w.kernel, g.h.before, g.w.before}
}

// directWork is a convolution, or a gradient of one, shared between processors
// by images.
type directWork[T float32 | float64] struct {
	images, filter, d, grad []T
	canvas                  canvas
	h, w, cin, n            int // of the images; n: columns of the products
	outH, outW              int
	kh, row, ldb            int // rows of the kernel; elements and stride of one
	sh, sw                  int
	batch, part             int // part: elements of memory for each processor
	memory                  []T
	multiply                []blas.Direct[T]
	partial                 []T // of the filter's gradient, by block
	blocks                  int
}

// start prepares a convolution whose products have n columns and the filter's
// rows.
func (w *directWork[T]) start(c *exec.KernelContext, filter []T) {
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0))
	w.ldb = (w.n + blas.DirectColumns - 1) / blas.DirectColumns * blas.DirectColumns
	padded := 0
	if w.ldb != w.n && filter != nil {
		padded = w.kh * w.row * w.ldb
	}
	memory := exec.Scratch[T](c, exec.ScratchA, parts*w.part+padded)
	w.memory, w.filter = memory[:parts*w.part], filter
	if padded > 0 {
		w.filter = memory[parts*w.part:]
		clear(w.filter)
		for i := range w.kh * w.row {
			copy(w.filter[i*w.ldb:], filter[i*w.n:(i+1)*w.n])
		}
	}
	for len(w.multiply) < parts {
		w.multiply = append(w.multiply, blas.Direct[T]{})
	}
}

// run does the work and lets go of the tensors.
func (w *directWork[T]) run() {
	units := w.batch
	if w.blocks > 0 {
		units = w.blocks
	}
	parallel.Run(min(units, len(w.memory)/w.part), w)
	*w = directWork[T]{multiply: w.multiply}
}

// Part implements [parallel.Job].
func (w *directWork[T]) Part(i, n int) {
	memory := w.memory[i*w.part : (i+1)*w.part]
	if w.blocks > 0 {
		from, to := parallel.Span(w.blocks, 1, i, n)
		for b := from; b < to; b++ {
			w.filterGrad(&w.multiply[i], memory, b)
		}
		return
	}
	from, to := parallel.Span(w.batch, 1, i, n)
	for k := from; k < to; k++ {
		w.image(&w.multiply[i], memory, k)
	}
}

// image computes one image of the output.
func (w *directWork[T]) image(mul *blas.Direct[T], memory []T, k int) {
	size := w.h * w.w * w.cin
	paint(w.canvas, memory, w.images[k*size:(k+1)*size], w.h, w.w, w.cin, w.cin)
	d := w.d[k*w.outH*w.outW*w.n:]
	const cache = 1 << 13 // elements of the filter that stay in the first cache
	if w.kh*w.row*w.ldb <= cache {
		for y := range w.outH {
			for kh := range w.kh {
				w.line(mul, memory, d, y, kh)
			}
		}
		return
	}
	for kh := range w.kh {
		for y := range w.outH {
			w.line(mul, memory, d, y, kh)
		}
	}
}

// line adds what one row of the kernel gives to one row of the output.
func (w *directWork[T]) line(mul *blas.Direct[T], memory, d []T, y, kh int) {
	a := memory[(y*w.sh+kh)*w.canvas.w*w.cin:]
	mul.Multiply(w.outW, w.n, w.row, a, w.sw*w.cin, 1, w.filter[kh*w.row*w.ldb:], w.ldb, d[y*w.outW*w.n:], w.n, kh > 0)
}

func directConv[T float32 | float64](c *exec.KernelContext, g *geometry, xs, fs, d []T, cout int) {
	w := exec.InFrame[directWork[T]](c)
	v := g.canvasOf()
	*w = directWork[T]{
		images: xs, d: d, canvas: v, h: g.h.in, w: g.w.in, cin: g.cin, n: cout, outH: g.h.out, outW: g.w.out, batch: g.batch,
		kh: g.h.kernel, row: g.w.kernel * g.cin, sh: g.h.stride, sw: g.w.stride, part: v.elements(g.cin), multiply: w.multiply,
	}
	w.start(c, fs)
	w.run()
}

// directInputGrad is a convolution of the gradient by the filter turned by half
// and transposed. The strides are 1.
func directInputGrad[T float32 | float64](c *exec.KernelContext, g *geometry, gs, fs, d []T, cout int) {
	w := exec.InFrame[directWork[T]](c)
	v := canvas{g.h.in + g.h.kernel - 1, g.w.in + g.w.kernel - 1, g.h.kernel - 1 - g.h.before, g.w.kernel - 1 - g.w.before}
	*w = directWork[T]{
		images: gs, d: d, canvas: v, h: g.h.out, w: g.w.out, cin: cout, n: g.cin, outH: g.h.in, outW: g.w.in, batch: g.batch,
		kh: g.h.kernel, row: g.w.kernel * cout, sh: 1, sw: 1, part: v.elements(cout), multiply: w.multiply,
	}
	turned := exec.Scratch[T](c, exec.ScratchB, len(fs))
	taps := g.h.kernel * g.w.kernel
	for k := range taps {
		from, to := fs[k*g.cin*cout:], turned[(taps-1-k)*g.cin*cout:]
		for i := range g.cin {
			for j := range cout {
				to[j*g.cin+i] = from[i*cout+j]
			}
		}
	}
	w.start(c, turned)
	w.run()
}

// filterBlocks is how many sums the gradient of a filter is made of, each of
// its own images, whatever the number of processors.
const filterBlocks = 8

func directFilterGrad[T float32 | float64](c *exec.KernelContext, g *geometry, xs, gs, d []T, cout int) {
	w := exec.InFrame[directWork[T]](c)
	v := g.canvasOf()
	*w = directWork[T]{
		images: xs, grad: gs, canvas: v, h: g.h.in, w: g.w.in, cin: g.cin, n: cout, outH: g.h.out, outW: g.w.out, batch: g.batch,
		kh: g.h.kernel, row: g.w.kernel * g.cin, sh: 1, sw: 1, multiply: w.multiply, blocks: min(filterBlocks, g.batch),
	}
	w.ldb = (cout + blas.DirectColumns - 1) / blas.DirectColumns * blas.DirectColumns
	w.part = v.elements(g.cin) + g.h.out*v.w*w.ldb
	partial := exec.Scratch[T](c, exec.ScratchB, w.blocks*len(d))
	w.partial = partial
	blocks := w.blocks
	w.start(c, nil)
	w.run()
	copy(d, partial[:len(d)])
	for b := 1; b < blocks; b++ {
		vec.Add(d, d, partial[b*len(d):(b+1)*len(d)])
	}
}

// filterGrad adds up the gradient of the filter over the images of a block. The
// gradient of the output is put on a canvas as wide as that of the images, so
// that the rows of both run on in step.
func (w *directWork[T]) filterGrad(mul *blas.Direct[T], memory []T, b int) {
	size := w.kh * w.row * w.n
	d := w.partial[b*size : (b+1)*size]
	clear(d)
	x, g := memory[:w.canvas.elements(w.cin)], memory[w.canvas.elements(w.cin):]
	from, to := parallel.Span(w.batch, 1, b, w.blocks)
	for k := from; k < to; k++ {
		paint(w.canvas, x, w.images[k*w.h*w.w*w.cin:], w.h, w.w, w.cin, w.cin)
		paint(canvas{h: w.outH, w: w.canvas.w}, g, w.grad[k*w.outH*w.outW*w.n:], w.outH, w.outW, w.n, w.ldb)
		// As many rows at once as stay in the first cache.
		const cache = 10 << 10
		rows := max(1, cache/((w.cin+w.ldb)*w.canvas.w))
		for y := 0; y < w.outH; y += rows {
			n := (min(rows, w.outH-y)-1)*w.canvas.w + w.outW
			for kh := range w.kh {
				mul.Multiply(w.row, w.n, n, x[(y+kh)*w.canvas.w*w.cin:], 1, w.cin, g[y*w.canvas.w*w.ldb:], w.ldb, d[kh*w.row*w.n:], w.n, true)
			}
		}
	}
}
