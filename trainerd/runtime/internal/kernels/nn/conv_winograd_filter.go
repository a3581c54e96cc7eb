package nn

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// winogradFilterWork is the gradient of a filter: the sums over all tiles
// of the 16 products of the images' factors and the gradient's, transformed
// back. Images are in blocks with a sum each, whatever the number of processors.
type winogradFilterWork[T float32 | float64] struct {
	images, grad shot[T]
	taps         []phaseTaps
	d            []T
	batch        int
	lines, block int // lines of tiles: in an image, and at once
	blocks       int // of images
	part         int // elements of memory for each processor
	plane, step  int // elements of a plane of the images' factors, and of the gradient's
	sums         int // elements of a sum
	memory       []T
	partial      []T // a gradient for each block
	multiply     []blas.Direct[T]
}

// largestSums is the number of pairs of channels up to which the sums of several
// blocks of images are kept.
const largestSums = 1 << 16

// sumBlocks is how many blocks of images there are for a filter of so many
// elements: fewer for large ones, whose sums cost more to add up.
func sumBlocks(filter, batch int) int {
	return min(batch, max(filterBlocks/2, min(filterBlocks, filterBlocks*largeFilter/filter)))
}

func winogradFilterGrad[T float32 | float64](c *exec.KernelContext, g *geometry, xs, gs, d []T, cout int) {
	w := exec.InFrame[winogradFilterWork[T]](c)
	*w = winogradFilterWork[T]{
		images: shot[T]{images: xs, h: g.h.in, w: g.w.in, n: g.cin, top: g.h.before, left: g.w.before, stride: g.h.stride,
			side: patchSide, tilesW: tilesOf(g.w.out), transform: inputTransform[T]},
		grad: shot[T]{images: gs, h: g.h.out, w: g.w.out, n: cout, stride: 1, side: tileSide, tilesW: tilesOf(g.w.out), transform: outputGradTransform[T]},
		taps: g.forwardTaps(w.taps[:0]), d: d, batch: g.batch, lines: tilesOf(g.h.out), blocks: sumBlocks(len(d), g.batch), multiply: w.multiply,
	}
	depth := w.images.depth()
	w.block = max(1, 2*blockTiles(depth+cout)/w.images.tilesW)
	w.plane, w.step, w.sums = apart(w.block*w.images.tilesW*depth), apart(w.block*w.images.tilesW*cout), apart(depth*cout)
	w.part = max(w.images.strip(), w.grad.strip(), 9*g.cin*cout) + factors*(w.plane+w.step+w.sums) + blas.PanelColumns[T]()
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0), w.blocks)
	w.memory = exec.Scratch[T](c, exec.ScratchA, parts*w.part)
	w.partial = exec.Scratch[T](c, exec.ScratchB, w.blocks*len(d))
	for len(w.multiply) < parts {
		w.multiply = append(w.multiply, blas.Direct[T]{})
	}
	parallel.Run(parts, w)
	copy(d, w.partial[:len(d)])
	for b := 1; b < w.blocks; b++ {
		vec.Add(d, d, w.partial[b*len(d):(b+1)*len(d)])
	}
	*w = winogradFilterWork[T]{multiply: w.multiply, taps: w.taps[:0]}
}

// Part implements [parallel.Job].
func (w *winogradFilterWork[T]) Part(i, n int) {
	memory := w.memory[i*w.part : (i+1)*w.part]
	from, to := parallel.Span(w.blocks, 1, i, n)
	for b := from; b < to; b++ {
		first, last := parallel.Span(w.batch, 1, b, w.blocks)
		w.sum(&w.multiply[i], memory, w.partial[b*len(w.d):(b+1)*len(w.d)], first*w.lines, last*w.lines)
	}
}

// sum sets d to the gradient that one or more lines of tiles give.
func (w *winogradFilterWork[T]) sum(mul *blas.Direct[T], memory, d []T, from, to int) {
	depth, cout := w.images.depth(), w.grad.n
	v, memory := memory[:factors*w.plane], memory[factors*w.plane:]
	sums, memory := memory[:factors*w.sums], memory[factors*w.sums:]
	// Products read a little beyond the last row of z.
	z, strip := memory[:factors*w.step+blas.PanelColumns[T]()], memory[factors*w.step:]
	for at := from; at < to; at += w.block {
		lines := min(w.block, to-at)
		for k := range lines {
			tile := k * w.images.tilesW
			w.images.line(v[tile*depth:], w.plane, strip, (at+k)/w.lines, (at+k)%w.lines)
			w.grad.line(z[tile*cout:], w.step, strip, (at+k)/w.lines, (at+k)%w.lines)
		}
		for k := range factors {
			w.products(mul, sums[k*w.sums:], v[k*w.plane:], z[k*w.step:], k, lines*w.images.tilesW, at > from)
		}
	}
	for p := range w.taps {
		w.positions(d, strip, sums, p)
	}
}

// products adds up the products of factor k of so many tiles, or begins to.
func (w *winogradFilterWork[T]) products(mul *blas.Direct[T], sums, v, z []T, k, tiles int, add bool) {
	cin, cout := w.images.n, w.grad.n
	for p, taps := range w.taps {
		// The sums of other factors count only for positions beyond the kernel.
		if taps.has(k) {
			mul.Multiply(blas.Factors[T]{M: cin, N: cout, K: tiles, A: v[p*cin:], RowA: 1, ColA: w.images.depth(),
				B: z, RowB: cout, C: sums[p*cin*cout:], RowC: cout, Add: add})
		}
	}
}

// positions makes the sums of a phase the gradient of the positions of the
// kernel that belong to it.
func (w *winogradFilterWork[T]) positions(d, memory, sums []T, phase int) {
	size := w.images.n * w.grad.n
	nine := memory[:9*size]
	vec.WinogradFilterGrad(nine, vec.Matrices{Row: 3 * size, Col: size}, sums[phase*size:], vec.Matrices{Row: patchSide * w.sums, Col: w.sums}, size, 1)
	for k := range 9 {
		if at := w.taps[phase].at(k); at >= 0 {
			copy(d[at*size:(at+1)*size], nine[k*size:])
		}
	}
}
