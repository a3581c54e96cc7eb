package nn

import (
	"runtime"
	"unsafe"

	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Convolutions by 3 by 3 filters with stride 1 as Winograd computes them: four
// pixels of the output, a tile, are made of 16 products of channels instead of
// 36. Tiles and filter are transformed to 16 factors each, for each of which
// there is a matrix product over all tiles of a block, and the products are
// transformed back. Rounding errors are about twice those of the plain sum.

// Sizes of Winograd's convolution.
const (
	factors   = 16 // of a tile
	tileSide  = 2  // pixels
	patchSide = 4  // pixels that a tile is made of
)

// winograd reports whether a convolution to so many channels is computed as
// Winograd does. In between, there are enough channels for the products to cost
// more than the transformations, and enough tiles for the filter's.
func winograd[T float32 | float64](g *geometry, cout int) bool {
	const fewest, tiles, largest = 12, 32, 1 << 18
	var zero T
	return unsafe.Sizeof(zero) == 4 && g.h.kernel == 3 && g.w.kernel == 3 && g.h.stride == 1 && g.w.stride == 1 && g.h.dilation == 1 && g.w.dilation == 1 &&
		min(g.cin, cout) >= fewest && g.cin*cout <= largest && g.batch*tilesOf(g.h.out)*tilesOf(g.w.out) >= tiles && g.h.out > 1 && g.w.out > 1
}

func tilesOf(pixels int) int { return (pixels + tileSide - 1) / tileSide }

// planes are the 16 matrices of a block of tiles, a row for each tile; factor k
// of tile t begins at k*plane + t*channels.
func planes(plane, channels int) vec.Matrices {
	return vec.Matrices{Row: patchSide * plane, Col: plane, Next: channels}
}

// shot is a batch of images of which lines of tiles are transformed.
type shot[T float32 | float64] struct {
	images    []T
	h, w, n   int // pixels and channels
	top, left int // pixels before the first of an image
	side      int // pixels of a patch
	tilesW    int // tiles of a line
	transform func(d []T, to vec.Matrices, x []T, from vec.Matrices, channels, count int)
}

// strip is the memory that a line of tiles needs.
func (s *shot[T]) strip() int { return s.side * (tileSide*s.tilesW + s.side - tileSide) * s.n }

// line transforms a line of tiles of an image to the planes. Patches inside the
// image are read in place, others are painted on the strip.
func (s *shot[T]) line(d []T, plane int, strip []T, image, line int) {
	y := tileSide*line - s.top
	pixels := s.images[image*s.h*s.w*s.n : (image+1)*s.h*s.w*s.n]
	from, to := 0, 0 // the tiles whose patches are inside
	if y >= 0 && y+s.side <= s.h {
		from = min(s.tilesW, max(0, (s.left+tileSide-1)/tileSide))
		to = max(from, min(s.tilesW, (s.w-s.side+s.left+tileSide)/tileSide))
	}
	if from < to {
		at := (y*s.w + tileSide*from - s.left) * s.n
		s.transform(d[from*s.n:], planes(plane, s.n), pixels[at:], vec.Matrices{Row: s.w * s.n, Col: s.n, Next: tileSide * s.n}, s.n, to-from)
	}
	s.painted(d, plane, strip, pixels, y, 0, from)
	s.painted(d, plane, strip, pixels, y, to, s.tilesW)
}

// painted transforms tiles of a line that begins at pixel row y.
func (s *shot[T]) painted(d []T, plane int, strip, pixels []T, y, from, to int) {
	if from >= to {
		return
	}
	v := canvas{h: s.side, w: tileSide*(to-from) + s.side - tileSide, top: -y, left: s.left - tileSide*from}
	paint(v, strip, pixels, s.h, s.w, s.n)
	s.transform(d[from*s.n:], planes(plane, s.n), strip, vec.Matrices{Row: v.w * s.n, Col: s.n, Next: tileSide * s.n}, s.n, to-from)
}

// winogradWork is a convolution, or its gradient for the images. Processors
// share the lines of tiles of all images.
type winogradWork[T float32 | float64] struct {
	shot[T]
	d              []T
	outH, outW     int
	cout           int
	filter         []T // 16 matrices, each of panels of columns
	filterPlane    int
	panel          int
	lines, block   int // of tiles: in an image, and at once
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
	const bytes, fewest = 256 << 10, 24
	return max(fewest, bytes/(factors*4*channels))
}

// winogradConv computes a convolution. The filter is [3,3,cin,cout].
func winogradConv[T float32 | float64](c *exec.KernelContext, s shot[T], d, filter []T, batch, outH, outW, cout int) {
	w := exec.InFrame[winogradWork[T]](c)
	s.side, s.tilesW, s.transform = patchSide, tilesOf(outW), inputTransform[T]
	*w = winogradWork[T]{shot: s, d: d, outH: outH, outW: outW, cout: cout, batch: batch, lines: tilesOf(outH), panel: blas.PanelColumns[T](), multiply: w.multiply}
	w.block = max(1, blockTiles(s.n+cout)/w.tilesW)
	w.plane, w.product = apart(w.block*w.tilesW*s.n), apart(w.block*w.tilesW*cout)
	w.part = max(w.strip(), tileSide*tileSide*w.tilesW*cout) + factors*(w.plane+w.product)
	w.filterPlane = apart(panelElements(s.n, cout))
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0))
	memory := exec.Scratch[T](c, exec.ScratchA, parts*w.part+factors*w.filterPlane)
	w.memory, w.filter = memory[:parts*w.part], memory[parts*w.part:]
	for len(w.multiply) < parts {
		w.multiply = append(w.multiply, blas.Direct[T]{})
	}
	w.transformFilter(filter)
	parallel.Run(min(parts, batch*w.lines), w)
	*w = winogradWork[T]{multiply: w.multiply}
}

func inputTransform[T float32 | float64](d []T, to vec.Matrices, x []T, from vec.Matrices, channels, count int) {
	vec.WinogradInput(d, to, x, from, channels, count)
}

// transformFilter makes the panels of the 16 factors of the filter.
func (w *winogradWork[T]) transformFilter(filter []T) {
	position := w.n * w.cout
	from := vec.Matrices{Row: 3 * position, Col: position}
	to := vec.Matrices{Row: patchSide * w.filterPlane, Col: w.filterPlane}
	for j := 0; j < w.cout; j += w.panel {
		width, used := panelWidth(w.panel, j, w.cout), min(w.panel, w.cout-j)
		if width > used {
			for k := range factors {
				clear(w.filter[k*w.filterPlane+j*w.n : k*w.filterPlane+j*w.n+width*w.n])
			}
		}
		for l := range w.n {
			vec.WinogradFilter(w.filter[j*w.n+l*width:], to, filter[l*w.cout+j:], from, used, 1)
		}
	}
}

// Part implements [parallel.Job].
func (w *winogradWork[T]) Part(i, n int) {
	from, to := parallel.Span(w.batch*w.lines, 1, i, n)
	memory := w.memory[i*w.part : (i+1)*w.part]
	v, m := memory[:factors*w.plane], memory[factors*w.plane:factors*(w.plane+w.product)]
	strip := memory[factors*(w.plane+w.product):]
	for at := from; at < to; at += w.block {
		lines := min(w.block, to-at)
		for k := range lines {
			w.line(v[k*w.tilesW*w.n:], w.plane, strip, (at+k)/w.lines, (at+k)%w.lines)
		}
		for k := range factors {
			w.product16(&w.multiply[i], m[k*w.product:], v[k*w.plane:], w.filter[k*w.filterPlane:], lines*w.tilesW)
		}
		for k := range lines {
			w.output(m[k*w.tilesW*w.cout:], strip, (at+k)/w.lines, (at+k)%w.lines)
		}
	}
}

// product16 is one of the 16 products of a block, of so many tiles.
func (w *winogradWork[T]) product16(mul *blas.Direct[T], m, v, filter []T, tiles int) {
	p := blas.Factors[T]{M: tiles, K: w.n, A: v, RowA: w.n, ColA: 1, RowC: w.cout}
	for j := 0; j < w.cout; j += w.panel {
		p.N, p.RowB, p.B, p.C = min(w.panel, w.cout-j), panelWidth(w.panel, j, w.cout), filter[j*w.n:], m[j:]
		mul.Multiply(p)
	}
}

// output makes a line of tiles two lines of an image. Where the tiles go beyond
// the image, they are made in the strip.
func (w *winogradWork[T]) output(m, strip []T, image, line int) {
	row := w.outW * w.cout
	to := w.d[(image*w.outH+tileSide*line)*row : (image*w.outH+min(w.outH, tileSide*line+tileSide))*row]
	from := planes(w.product, w.cout)
	if w.outW == tileSide*w.tilesW && len(to) == tileSide*row {
		vec.WinogradOutput(to, vec.Matrices{Row: row, Col: w.cout, Next: tileSide * w.cout}, m, from, w.cout, w.tilesW)
		return
	}
	wide := tileSide * w.tilesW * w.cout
	vec.WinogradOutput(strip, vec.Matrices{Row: wide, Col: w.cout, Next: tileSide * w.cout}, m, from, w.cout, w.tilesW)
	for y := 0; y*row < len(to); y++ {
		copy(to[y*row:(y+1)*row], strip[y*wide:])
	}
}

// winogradInputGrad is a convolution of the output's gradient by the filter
// turned by half and transposed.
func winogradInputGrad[T float32 | float64](c *exec.KernelContext, g *geometry, gs, fs, d []T, cout int) {
	turned := exec.Scratch[T](c, exec.ScratchB, len(fs))
	size := g.cin * cout
	for k := range 9 {
		blas.Transpose(turned[(8-k)*size:(9-k)*size], g.cin, fs[k*size:(k+1)*size], g.cin, cout)
	}
	s := shot[T]{images: gs, h: g.h.out, w: g.w.out, n: cout, top: 2 - g.h.before, left: 2 - g.w.before}
	winogradConv(c, s, d, turned, g.batch, g.h.in, g.w.in, g.cin)
}
