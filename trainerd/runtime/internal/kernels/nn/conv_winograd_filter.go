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
	block        int // lines of tiles at once
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
			down: g.h.groups(), across: g.w.groups(), side: patchSide, lines: tilesOf(g.h.out), tilesW: tilesOf(g.w.out) + g.w.groups() - 1, transform: inputTransform[T]},
		grad: shot[T]{images: gs, h: g.h.out, w: g.w.out, n: cout, stride: 1,
			down: 1, across: 1, side: tileSide, lines: tilesOf(g.h.out), tilesW: tilesOf(g.w.out), transform: outputGradTransform[T]},
		taps: g.forwardTaps(w.taps[:0]), d: d, batch: g.batch, blocks: sumBlocks(len(d), g.batch), multiply: w.multiply,
	}
	if g.d.kernel > 0 {
		strips := w.grad.lines
		w.images.stacked(g.d.extent, strips)
		w.grad.stacked(extent{in: g.d.out, out: g.d.out, kernel: 1}, strips)
		w.taps = g.stackedTaps(w.taps)
		w.batch = g.batch / g.d.out * strips
		w.blocks = sumBlocks(len(d), w.batch)
	}
	depth := w.images.depth()
	w.block = max(1, 2*blockTiles(depth+cout)/w.images.tilesW)
	height := w.block + (w.images.down-1)*(w.block/w.images.lines+2) // the factors of groups, of all images that a block has lines of
	w.plane, w.step, w.sums = apart(height*w.images.tilesW*depth), apart(w.block*w.grad.tilesW*cout), apart(len(w.taps)*g.cin*cout)
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
		w.sum(&w.multiply[i], memory, w.partial[b*len(w.d):(b+1)*len(w.d)], first*w.images.lines, last*w.images.lines)
	}
}

// sum sets d to the gradient that one or more lines of tiles give.
func (w *winogradFilterWork[T]) sum(mul *blas.Direct[T], memory, d []T, from, to int) {
	depth := w.images.depth()
	v, memory := memory[:factors*w.plane], memory[factors*w.plane:]
	sums, memory := memory[:factors*w.sums], memory[factors*w.sums:]
	// Products read a little beyond the last row of z.
	z, strip := memory[:factors*w.step+blas.PanelColumns[T]()], memory[factors*w.step:]
	for at := from; at < to; at += w.block {
		lines := min(w.block, to-at)
		w.grad.factorsOf(z, w.step, strip, at, lines)
		tall, n := 0, 0
		for k := 0; k < lines; k += n {
			n = w.images.together(at+k, lines-k)
			w.images.factorsOf(v[tall*w.images.tilesW*depth:], w.plane, strip, at+k, n)
			tall += n + w.images.down - 1
		}
		for k := range factors {
			w.products(mul, sums[k*w.sums:], v[k*w.plane:], z[k*w.step:], k, at, lines, at > from)
		}
	}
	for p := range w.taps {
		w.positions(d, strip, sums, p)
	}
}

// products adds up the products of factor k of so many lines of tiles, or begins to.
func (w *winogradFilterWork[T]) products(mul *blas.Direct[T], sums, v, z []T, k, at, lines int, add bool) {
	cin, depth, down, across := w.images.n, w.images.depth(), w.images.down, w.images.across
	for p, taps := range w.taps {
		// The sums of other factors count only for positions beyond the kernel.
		if !taps.has(k) {
			continue
		}
		phase, y, x := p/(down*across), p/across%down, p%across
		from, n := (y*w.images.tilesW+x)*depth+phase*cin, 0
		for l := 0; l < lines; l += n {
			n = w.images.together(at+l, lines-l)
			w.multiplyLines(mul, sums[p*cin*w.grad.n:], v[from:], z[l*w.grad.tilesW*w.grad.n:], n, add || l > 0)
			from += (n + down - 1) * w.images.tilesW * depth
		}
	}
}

// multiplyLines adds the product of lines whose factors follow each other.
func (w *winogradFilterWork[T]) multiplyLines(mul *blas.Direct[T], sums, v, z []T, lines int, add bool) {
	tiles, cout := w.grad.tilesW, w.grad.n
	p := blas.Factors[T]{M: w.images.n, N: cout, K: tiles, A: v, RowA: 1, ColA: w.images.depth(), B: z, RowB: cout, C: sums, RowC: cout, Add: add,
		Segments: lines, NextA: w.images.tilesW * w.images.depth(), NextB: tiles * cout}
	if tiles == w.images.tilesW {
		p.K, p.Segments = lines*tiles, 1
	}
	mul.Multiply(p)
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
