package nn

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Convolutions that make images of few channels, as the last layer of a generator
// does: a product whose columns are the channels would leave most lanes of the
// vectors empty. Here the columns are what a pixel adds to all pixels that the kernel
// reaches, and a second pass puts that where it belongs.

// scattered reports whether images of few channels are made that way, by a
// kernel that takes so many channels to as many as make.
func (g *geometry) scattered(take, create int) bool {
	const most, fewest = blas.DirectColumns / 2, 128
	taps := g.h.kernel * g.w.kernel
	return create > 0 && create <= most && taps > 1 && taps*take >= fewest && g.rows > 0 && g.batch > 0
}

// cheaperScattered reports whether the gradient of the images, where Winograd's could be
// computed, takes fewer multiplications that way: without padding, a large kernel has
// far fewer positions than the images have pixels, and few channels fill the vectors.
func cheaperScattered[T float32 | float64](g *geometry, cout int) bool {
	const added = 8 // multiplications that take as long as adding an element where it belongs
	if !winograd[T](g, cout) || g.h.stride*g.w.stride > 1 || g.rows == 0 {
		return false
	}
	perTile := (1 + 3*g.h.groups()) * (1 + 3*g.w.groups())
	lanes := (g.cin + blas.DirectColumns - 1) / blas.DirectColumns * blas.DirectColumns
	return g.rows*g.column*(cout+added) < tilesOf(g.h.in)*tilesOf(g.w.in)*perTile*lanes*cout
}

// scatterWork makes images of a gradient, shared between processors by images.
type scatterWork[T float32 | float64] struct {
	g        geometry // of a convolution of the images that are made
	from, d  []T
	n        int // channels of what they are made from
	matrix   []T // in panels: what a pixel of each channel adds to the pixels around
	panel    int
	lines    int // of pixels at once: what they add stays in the second cache
	memory   []T
	multiply []blas.Direct[T]
}

// scatterInputGrad is the gradient of the images.
func scatterInputGrad[T float32 | float64](c *exec.KernelContext, g *geometry, gs, fs, d []T, cout int) {
	matrix := exec.Scratch[T](c, exec.ScratchB, len(fs))
	blas.Transpose(matrix, g.column, fs, g.column, cout)
	scatter(c, *g, gs, matrix, d, cout)
}

// scatterConv is a convolution with stride 1: the gradient of one whose kernel is
// turned by half.
func scatterConv[T float32 | float64](c *exec.KernelContext, g *geometry, xs, fs, d []T, cout int) {
	taps := g.h.kernel * g.w.kernel
	matrix := exec.Scratch[T](c, exec.ScratchB, len(fs))
	for t := range taps {
		for l := range g.cin {
			copy(matrix[(l*taps+taps-1-t)*cout:][:cout], fs[(t*g.cin+l)*cout:])
		}
	}
	turned := geometry{h: g.h.mirrored(), w: g.w.mirrored(), batch: g.batch, cin: cout, imageIn: g.rows * cout, rows: g.h.in * g.w.in, column: taps * cout}
	scatter(c, turned, xs, matrix, d, g.cin)
}

// mirrored is the geometry from the output to the input, with stride 1.
func (e extent) mirrored() extent {
	e.in, e.out, e.before = e.out, e.in, (e.kernel-1)*e.dilation-e.before
	return e
}

// scatter makes the images d of pixels of n channels.
func scatter[T float32 | float64](c *exec.KernelContext, g geometry, from, matrix, d []T, n int) {
	const elements = 1 << 16 // of what some lines add
	w := exec.InFrame[scatterWork[T]](c)
	*w = scatterWork[T]{g: g, from: from, d: d, n: n, panel: blas.PanelColumns[T](), multiply: w.multiply,
		lines: min(g.h.out, max(1, elements/(g.w.out*g.column)))}
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0), g.batch)
	memory := exec.Scratch[T](c, exec.ScratchA, parts*w.part()+panelElements(n, g.column))
	w.memory, w.matrix = memory[:parts*w.part()], memory[parts*w.part():]
	packPanels(w.matrix, matrix, w.panel, n, g.column)
	for len(w.multiply) < parts {
		w.multiply = append(w.multiply, blas.Direct[T]{})
	}
	parallel.Run(parts, w)
	*w = scatterWork[T]{multiply: w.multiply}
}

// part is the memory that a processor needs.
func (w *scatterWork[T]) part() int { return w.lines * w.g.w.out * w.g.column }

// Part implements [parallel.Job].
func (w *scatterWork[T]) Part(i, n int) {
	g := &w.g
	cols := w.memory[i*w.part() : (i+1)*w.part()]
	from, to := parallel.Span(g.batch, 1, i, n)
	for k := from; k < to; k++ {
		image := w.d[k*g.imageIn : (k+1)*g.imageIn]
		clear(image)
		for y := 0; y < g.h.out; y += w.lines {
			lines := min(w.lines, g.h.out-y)
			w.products(&w.multiply[i], cols, w.from[(k*g.h.out+y)*g.w.out*w.n:], lines*g.w.out)
			uncolumns(g, image, cols, y, y+lines)
		}
	}
}

// products makes the columns of some pixels.
func (w *scatterWork[T]) products(mul *blas.Direct[T], cols, from []T, pixels int) {
	p := blas.Factors[T]{M: pixels, K: w.n, A: from, RowA: w.n, ColA: 1, RowC: w.g.column}
	for j := 0; j < w.g.column; j += w.panel {
		p.N, p.RowB, p.B, p.C = min(w.panel, w.g.column-j), panelWidth(w.panel, j, w.g.column), w.matrix[j*w.n:], cols[j:]
		mul.Multiply(p)
	}
}
