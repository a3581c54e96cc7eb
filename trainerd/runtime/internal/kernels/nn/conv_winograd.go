package nn

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Convolutions by 3 by 3 filters with stride 1 as Winograd computes them: four
// pixels of the output, a tile, are made of 16 products of channels instead of
// 36. Tiles and filter are transformed to 16 factors each; each factor takes one
// matrix product over all tiles of a block, and the products are transformed
// back. Rounding errors are about twice those of the plain sum.
//
// With stride 2 and a kernel of up to 6 by 6, each quarter of the pixels has a
// filter of up to 3 by 3, so that the convolution is one with stride 1. Factors
// that are zero because a filter is smaller are left out: for 5 by 5, a tile
// takes 49 products of channels instead of 100.
//
// With stride 1 and a kernel of up to 7 by 7, the positions are in groups: the
// first three, and two more each, which are a filter of three whose first
// position is zero. A group is two pixels, a tile, further than the one before, so
// the factors of a tile serve all groups: 5 by 5 takes 49 products here, too.

// Sizes of Winograd's convolution.
const (
	factors   = 16 // of a tile
	tileSide  = 2  // pixels
	patchSide = 4  // pixels that a tile is made of
)

// winograd reports whether a convolution to so many channels is computed as
// Winograd does: there must be enough channels for the products to cost more
// than the transformations of tiles, and enough tiles to transform the filter for.
func winograd[T float32 | float64](g *geometry, cout int) bool {
	const fewest, tiles, largest = 12, 32, 1 << 18
	var zero T
	return unsafe.Sizeof(zero) == 4 && g.h.tiled() && g.w.tiled() && g.d.tiled() && (g.d.kernel == 0 || g.h.groups()*g.w.groups()*g.h.stride == 1) &&
		g.h.stride == g.w.stride && min(g.cin, cout) >= fewest &&
		g.filters()*g.cin*cout <= largest && g.batch*tilesOf(g.h.out)*tilesOf(g.w.out) >= tiles
}

// tiled reports whether a dimension has stride 1 and a kernel of three to seven, or
// stride 2 and one of four to six. Groups need products of several tiles.
func (e *extent) tiled() bool {
	const fewest = 6 // pixels of the output
	return e.dilation == 1 && e.out > 1 && (e.stride == 1 && (e.kernel == 3 || e.kernel > 3 && e.kernel <= 7 && e.out >= fewest) ||
		e.stride == 2 && e.kernel >= 4 && e.kernel <= 6)
}

// groups is how many groups the positions of the kernel are in, in each phase.
func (e *extent) groups() int { return groupsOf((e.kernel + e.stride - 1) / e.stride) }

// filters is how many filters of 3 by 3 or less the kernel is made of.
func (g *geometry) filters() int {
	return g.d.positions() * g.h.stride * g.w.stride * g.h.groups() * g.w.groups()
}

func groupsOf(positions int) int { return max(1, positions/2) }

func tilesOf(pixels int) int { return (pixels + tileSide - 1) / tileSide }

// planes are the 16 matrices of a block of tiles, a row for each tile; factor k
// of tile t begins at k*plane + t*channels.
func planes(plane, channels int) vec.Matrices {
	return vec.Matrices{Row: patchSide * plane, Col: plane, Next: channels}
}

// winogradWork is a convolution, or its gradient for the images. Processors
// share the lines of tiles of all images. Either the images or the output have
// phases.
type winogradWork[T float32 | float64] struct {
	shot[T]
	d              []T
	outH, outW     int
	outStride      int
	cout           int
	taps           []phaseTaps
	filter         []T // for each phase and group 16 matrices, each of panels of columns
	filterPlane    int
	panel          int
	tiles          int // in a line of an image
	block          int // lines of tiles at once
	batch, part    int // part: elements of memory for each processor
	memory         []T
	multiply       []blas.Direct[T]
	plane, product int // elements of a plane of factors, and of products
}

// apart returns the distance of planes of so many elements: such that the same
// element of all 16 is in different sets of the caches.
func apart(elements int) int {
	const line, page = 16, 1024
	return (elements+page-1)/page*page + line
}

// blockTiles is how many tiles are worked on at once: their factors and products
// stay in the second cache, and are enough for whole tiles of the products.
func blockTiles(channels int) int {
	const bytes, fewest = 256 << 10, 48
	return max(fewest, bytes/(factors*4*channels))
}

// winogradConv computes a convolution of the images.
func winogradConv[T float32 | float64](c *exec.KernelContext, g *geometry, xs, fs, d []T, cout int) {
	w := exec.InFrame[winogradWork[T]](c)
	*w = winogradWork[T]{multiply: w.multiply, taps: g.forwardTaps(w.taps[:0]), d: d, outH: g.h.out, outW: g.w.out, outStride: 1, cout: cout, batch: g.batch,
		shot: shot[T]{images: xs, h: g.h.in, w: g.w.in, n: g.cin, top: g.h.before, left: g.w.before, stride: g.h.stride, down: g.h.groups(), across: g.w.groups()}}
	if g.d.kernel > 0 {
		w.stacked(g, g.d.extent)
	}
	w.run(c, fs, false)
}

// winogradInputGrad is a convolution of the output's gradient by the filter of
// each phase, turned by half and transposed.
func winogradInputGrad[T float32 | float64](c *exec.KernelContext, g *geometry, gs, fs, d []T, cout int) {
	w := exec.InFrame[winogradWork[T]](c)
	top, height := g.h.window()
	left, width := g.w.window()
	*w = winogradWork[T]{multiply: w.multiply, taps: w.taps[:0], d: d, outH: g.h.in, outW: g.w.in, outStride: g.h.stride, cout: g.cin, batch: g.batch,
		shot: shot[T]{images: gs, h: g.h.out, w: g.w.out, n: cout, top: -top, left: -left, stride: 1, down: groupsOf(height), across: groupsOf(width)}}
	for p := range g.h.stride * g.h.stride {
		w.taps = appendGroups(w.taps, phaseTaps{y: g.h.turned(p/g.h.stride, top), x: g.w.turned(p%g.h.stride, left)}, w.down, w.across)
	}
	if g.d.kernel > 0 {
		w.stacked(g, g.d.mirrored())
		slices.Reverse(w.taps)
	}
	w.run(c, fs, true)
}

// stacked makes the images strips of tiles of volumes.
func (w *winogradWork[T]) stacked(g *geometry, d extent) {
	w.shot.stacked(d, tilesOf(w.outH))
	w.taps = g.stackedTaps(w.taps)
	w.batch = g.batch / g.d.out * w.strips
}

// run does the work and lets go of the tensors.
func (w *winogradWork[T]) run(c *exec.KernelContext, filter []T, transpose bool) {
	phases := w.outStride * w.outStride
	w.tiles = tilesOf((w.outW + w.outStride - 1) / w.outStride)
	if w.strips == 0 {
		w.lines = tilesOf((w.outH + w.outStride - 1) / w.outStride)
	}
	w.side, w.tilesW, w.transform, w.panel = patchSide, w.tiles+w.across-1, inputTransform[T], blas.PanelColumns[T]()
	w.block = max(1, blockTiles(w.depth()+phases*w.cout)/w.tilesW)
	w.plane, w.product = apart((w.block+w.down-1)*w.tilesW*w.depth()), apart(w.block*w.tiles*phases*w.cout)
	w.part = max(w.strip(), tileSide*tileSide*w.tiles*w.cout) + factors*(w.plane+w.product)
	w.filterPlane = apart(panelElements(w.n, w.cout))
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0))
	memory := exec.Scratch[T](c, exec.ScratchA, parts*w.part+len(w.taps)*factors*w.filterPlane)
	w.memory, w.filter = memory[:parts*w.part], memory[parts*w.part:]
	for len(w.multiply) < parts {
		w.multiply = append(w.multiply, blas.Direct[T]{})
	}
	w.transformFilter(exec.Scratch[T](c, exec.ScratchB, 9*w.n*w.cout), filter, transpose)
	parallel.Run(min(parts, w.batch*w.lines), w)
	*w = winogradWork[T]{multiply: w.multiply, taps: w.taps[:0]}
}

// transformFilter makes the panels of the factors of the filter. It collects the
// positions of a phase in memory.
func (w *winogradWork[T]) transformFilter(memory, filter []T, transpose bool) {
	size := w.n * w.cout
	for p, taps := range w.taps {
		for k := range 9 {
			to, at := memory[k*size:(k+1)*size], taps.at(k)
			switch {
			case at < 0:
				clear(to)
			case transpose:
				blas.Transpose(to, w.cout, filter[at*size:(at+1)*size], w.cout, w.n)
			default:
				copy(to, filter[at*size:(at+1)*size])
			}
		}
		w.transformPanels(w.filter[p*factors*w.filterPlane:], memory)
	}
}

// transformPanels makes the panels of a filter of 3 by 3.
func (w *winogradWork[T]) transformPanels(d, filter []T) {
	size := w.n * w.cout
	from, to := vec.Matrices{Row: 3 * size, Col: size}, vec.Matrices{Row: patchSide * w.filterPlane, Col: w.filterPlane}
	for j := 0; j < w.cout; j += w.panel {
		width, used := panelWidth(w.panel, j, w.cout), min(w.panel, w.cout-j)
		for k := range factors * min(1, width-used) {
			clear(d[k*w.filterPlane+j*w.n : k*w.filterPlane+j*w.n+width*w.n])
		}
		for l := range w.n {
			vec.WinogradFilter(d[j*w.n+l*width:], to, filter[l*w.cout+j:], from, used, 1)
		}
	}
}

// Part implements [parallel.Job].
func (w *winogradWork[T]) Part(i, n int) {
	from, to := parallel.Span(w.batch*w.lines, 1, i, n)
	memory := w.memory[i*w.part : (i+1)*w.part]
	v, m := memory[:factors*w.plane], memory[factors*w.plane:factors*(w.plane+w.product)]
	strip := memory[factors*(w.plane+w.product):]
	for lines := 0; from < to; from += lines {
		lines = w.together(from, min(w.block, to-from))
		w.factorsOf(v, w.plane, strip, from, lines)
		for k := range factors {
			w.products(&w.multiply[i], m[k*w.product:], v[k*w.plane:], k, lines)
		}
		for k := range lines {
			image, line := (from+k)/w.lines, (from+k)%w.lines
			if w.strips > 0 {
				image, line = image/w.strips*w.lines+line, image%w.strips
			}
			w.output(m[k*w.tiles*w.outStride*w.outStride*w.cout:], strip, image, line)
		}
	}
}

// products computes the products of factor k, of so many lines of tiles.
func (w *winogradWork[T]) products(mul *blas.Direct[T], m, v []T, k, lines int) {
	phases := w.outStride * w.outStride
	if w.strips > 0 {
		w.multiplyGroups(mul, m, v, w.filter[k*w.filterPlane:], lines, w.down, w.tilesW*w.n, false)
		return
	}
	for o := range phases {
		done := false
		// A row of groups at a time; one of the two phases is always zero.
		for q := range w.stride * w.stride * w.down {
			first := (o*w.down + q) * w.across
			some := 0
			for some < w.across && w.taps[first+some].has(k) {
				some++
			}
			if some == 0 {
				continue
			}
			p, y := q/w.down, q%w.down
			w.multiplyGroups(mul, m[o*w.cout:], v[y*w.tilesW*w.depth()+p*w.n:], w.filter[(first*factors+k)*w.filterPlane:], lines, some, w.depth(), done)
			done = true
		}
		for t := 0; !done && t < lines*w.tiles; t++ {
			at := (t*phases + o) * w.cout
			clear(m[at : at+w.cout])
		}
	}
}

// multiplyGroups is the product of one factor of some groups of one phase, whose factors are next
// elements apart.
func (w *winogradWork[T]) multiplyGroups(mul *blas.Direct[T], m, v, filter []T, lines, groups, next int, add bool) {
	p := blas.Factors[T]{M: w.tiles, K: w.n, RowA: w.depth(), ColA: 1, RowC: w.outStride * w.outStride * w.cout, Add: add,
		Segments: groups, NextA: next, NextB: factors * w.filterPlane}
	if w.tiles == w.tilesW {
		p.M, lines = lines*w.tiles, 1
	}
	for j := 0; j < w.cout; j += w.panel {
		p.N, p.RowB, p.B = min(w.panel, w.cout-j), panelWidth(w.panel, j, w.cout), filter[j*w.n:]
		for y := range lines {
			p.A, p.C = v[y*w.tilesW*p.RowA:], m[y*w.tiles*p.RowC+j:]
			mul.Multiply(p)
		}
	}
}

// output makes a line of tiles two lines of each phase of an image. Where the
// tiles go beyond the image, they are made in the strip.
func (w *winogradWork[T]) output(m, strip []T, image, line int) {
	s, row := w.outStride, w.outW*w.cout
	d := w.d[image*w.outH*row : (image+1)*w.outH*row]
	from := planes(w.product, s*s*w.cout)
	for o := range s * s {
		y, x := tileSide*s*line+o/s, o%s
		if y+s < w.outH && s*(tileSide*w.tiles-1)+x < w.outW {
			vec.WinogradOutput(d[y*row+x*w.cout:], vec.Matrices{Row: s * row, Col: s * w.cout, Next: tileSide * s * w.cout}, m[o*w.cout:], from, w.cout, w.tiles)
			continue
		}
		wide := tileSide * w.tiles * w.cout
		vec.WinogradOutput(strip, vec.Matrices{Row: wide, Col: w.cout, Next: tileSide * w.cout}, m[o*w.cout:], from, w.cout, w.tiles)
		for k := range tileSide {
			w.scatter(d, strip[k*wide:], y+k*s, x)
		}
	}
}

// scatter puts a line of a phase to every outStride-th pixel of row y of an
// image, if there is such a row.
func (w *winogradWork[T]) scatter(d, line []T, y, x int) {
	if y >= w.outH {
		return
	}
	for k := 0; x < w.outW; x += w.outStride {
		copy(d[(y*w.outW+x)*w.cout:][:w.cout], line[k*w.cout:])
		k++
	}
}
