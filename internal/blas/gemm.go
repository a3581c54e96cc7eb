package blas

import (
	"cmp"
	"sync"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
)

// engine is the kernels for one element type on this processor, and the sizes
// of blocks that suit them.
type engine[T float32 | float64] struct {
	rows, cols int // of a tile
	kc, mc, nc int // largest blocks

	// tiles[r-1] computes r rows of a tile: c = a*b, or c += a*b when add is
	// not 0. a has the strides rs between rows and cs between columns. The inner
	// dimension is that many segments of k; after each, skipA elements of
	// a and skipB of b are left out.
	tiles []tile[T]
	// narrow are tiles of half as many columns, and of more rows; nil for none.
	narrow []tile[T]
	// gather copies the first width elements of k rows, one after the other.
	gather func(width int, dst, src *T, ld, k int)
	// columns makes width rows of k elements columns of dst, whose rows have
	// step elements. It returns how much of k it did; the rest is too little.
	columns func(width, step int, dst, src []T, ld, k int) int

	mu   sync.Mutex
	idle []*workspace[T]
}

// tile computes one tile, or some rows of one.
type tile[T float32 | float64] = func(k int, a *T, rs, cs int, b *T, ldb int, c *T, ldc int, add, segments, skipA, skipB int)

// workspace is the memory of one goroutine in a product.
type workspace[T float32 | float64] struct {
	e          *engine[T]
	a, b, tile []T

	whole product[T] // what this workspace shares with those of other goroutines
}

func (e *engine[T]) workspace() *workspace[T] {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.idle) - 1; n >= 0 {
		w := e.idle[n]
		e.idle = e.idle[:n]
		return w
	}
	return &workspace[T]{tile: make([]T, e.rows*e.cols)}
}

func (e *engine[T]) release(w *workspace[T]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, w)
}

// sized returns the first n elements of a buffer, made larger if need be.
func sized[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
}

// parallelWork is the number of multiplications above which a product is worth
// a second goroutine: some 20 microseconds of one processor with AVX-512.
const parallelWork = 1 << 20

// multiply computes a product that is not empty.
func (e *engine[T]) multiply(p *product[T]) {
	if p.alpha == 0 {
		p.scale()
		return
	}
	w := e.workspace()
	w.e, w.whole = e, *p
	if p.m*p.n*p.k <= parallelWork {
		w.block(p)
	} else {
		parallel.Run(max(1, min(maxParts, p.m*p.n/(e.rows*e.cols))), w)
	}
	w.whole = product[T]{}
	e.release(w)
}

// maxParts bounds the processors that one product is split over; each has its
// own copy of the smaller factor.
const maxParts = 64

// Part implements [parallel.Job]: it computes some columns, or some rows, of
// the whole product, so that the smaller factor is the one copied repeatedly.
func (w *workspace[T]) Part(i, n int) {
	p, e := w.whole, w.e
	if p.m <= p.n {
		from, to := parallel.Span(p.n, e.cols, i, n)
		p.narrow(from, to)
	} else {
		from, to := parallel.Span(p.m, e.rows, i, n)
		p.shorten(from, to)
	}
	if p.m == 0 || p.n == 0 {
		return
	}
	if i == 0 {
		w.block(&p)
		return
	}
	own := e.workspace()
	own.e = e
	own.block(&p)
	e.release(own)
}

// narrow limits the product to the columns from to to.
func (p *product[T]) narrow(from, to int) {
	p.n = to - from
	if p.n == 0 {
		return
	}
	p.c = p.c[from:]
	if p.tb {
		p.b = p.b[from*p.ldb:]
	} else {
		p.b = p.b[from:]
	}
}

// shorten limits the product to the rows from to to.
func (p *product[T]) shorten(from, to int) {
	p.m = to - from
	if p.m == 0 {
		return
	}
	p.c = p.c[from*p.ldc:]
	if p.ta {
		p.a = p.a[from:]
	} else {
		p.a = p.a[from*p.lda:]
	}
}

// scale multiplies c by beta.
func (p *product[T]) scale() {
	if p.beta == 1 {
		return
	}
	for i := range p.m {
		row := p.c[i*p.ldc:][:p.n]
		if p.beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= p.beta
		}
	}
}

// block computes a product in blocks.
func (w *workspace[T]) block(p *product[T]) {
	e := w.e
	if p.beta != 0 {
		p.scale()
	}
	kc := even(p.k, e.kc, 4)
	if p.segment > 0 {
		kc = even(p.k/p.segment, e.kc/p.segment, 1) * p.segment
	}
	mc, nc := even(p.m, e.mc, e.rows), even(p.n, e.nc, e.cols)
	// Panels of b that are copied for few rows are used while the second cache has
	// them; those of a, all in one block, stay.
	once := p.m <= mc && p.k <= kc
	if once {
		nc = even(p.n, max(e.cols, e.kc*e.mc*3/2/kc), e.cols)
	}
	var a panels[T]
	for j := 0; j < p.n; j += nc {
		n := min(nc, p.n-j)
		for l := 0; l < p.k; l += kc {
			k := min(kc, p.k-l)
			b := w.panelsB(p, l, k, j, n)
			for i := 0; i < p.m; i += mc {
				m := min(mc, p.m-i)
				if j == 0 || !once {
					a = w.panelsA(p, i, m, l, k, n)
				}
				w.tiles(p, a, b, i, m, j, n, k, l > 0 || p.beta != 0)
			}
		}
	}
}

// even returns the size of the fewest blocks of at most max, as equal as
// multiples of step allow.
func even(total, max, step int) int {
	blocks := (total + max - 1) / max
	size := (total + blocks - 1) / blocks
	return (size + step - 1) / step * step
}

// panels is a block of a factor as the tiles read it: element (x, l) of panel
// q, l along the inner dimension, is data[q*panel + x*rs + l*cs].
type panels[T float32 | float64] struct {
	data   []T
	panel  int
	rs, cs int
}

// panelsA returns rows i to i+m, columns l to l+k of op(a).
func (w *workspace[T]) panelsA(p *product[T], i, m, l, k, n int) panels[T] {
	e := w.e
	// A copy costs about as much as two panels of b read what is not copied.
	if p.alpha == 1 && n <= 2*e.cols && !p.ta {
		return panels[T]{data: p.a[i*p.lda+l:], panel: e.rows * p.lda, rs: p.lda, cs: 1}
	}
	count := (m + e.rows - 1) / e.rows
	out := panels[T]{data: sized(&w.a, count*e.rows*k), panel: e.rows * k, rs: 1, cs: e.rows}
	if p.ta {
		w.packColumns(out, p, i, m, l, k)
	} else {
		for q := range count {
			r := i + q*e.rows
			w.pack(out.data[q*out.panel:][:out.panel], p.a, p.lda, r, min(e.rows, i+m-r), l, k, true, e.rows)
		}
	}
	if p.alpha != 1 {
		vec.MulScalar(out.data, out.data, p.alpha)
	}
	return out
}

// packColumns copies the panels of a that is stored transposed, a few of its rows at a
// time if they do not all fit the first cache: panels share cache lines.
func (w *workspace[T]) packColumns(out panels[T], p *product[T], i, m, l, k int) {
	rows := 8
	if k*p.lda <= 1<<13 {
		rows = k
	}
	e := w.e
	for y := 0; y < k; y += rows {
		n := min(rows, k-y)
		for q, r := 0, i; r < i+m; q, r = q+1, r+e.rows {
			w.pack(out.data[q*out.panel+y*e.rows:][:n*e.rows], p.a, p.lda, r, min(e.rows, i+m-r), l+y, n, false, e.rows)
		}
	}
}

// fewTiles is how many tiles one after the other read a panel that lies far apart in about the
// time that copying it takes.
const fewTiles = 8

// panelsB returns rows l to l+k, columns j to j+n of op(b). The last panel is
// a copy unless it is full: tiles read whole panels.
func (w *workspace[T]) panelsB(p *product[T], l, k, j, n int) panels[T] {
	e := w.e
	full := n%e.cols == 0 || n%e.cols == e.cols/2 && e.narrow != nil
	if !p.tb && full && (p.m <= fewTiles*e.rows || k*p.ldb <= e.kc*e.cols) {
		return panels[T]{data: p.b[l*p.ldb+j:], panel: e.cols, cs: p.ldb}
	}
	count := (n + e.cols - 1) / e.cols
	out := panels[T]{data: sized(&w.b, count*e.cols*k), panel: e.cols * k, cs: e.cols}
	for q := range count {
		x := j + q*e.cols
		w.pack(out.data[q*out.panel:][:out.panel], p.b, p.ldb, x, min(e.cols, j+n-x), l, k, p.tb, e.cols)
	}
	return out
}

// pack copies a panel of width elements by k into dst, which has full elements
// a row; those past width are zero. The panel begins at x across and l along
// the inner dimension, which runs along the rows of src when rows is set.
func (w *workspace[T]) pack(dst, src []T, ld, x, width, l, k int, rows bool, full int) {
	e := w.e
	if width < full {
		clear(dst)
	}
	if !rows {
		src = src[l*ld+x:]
		if width == full {
			e.gather(width, &dst[0], &src[0], ld, k)
			return
		}
		for i := range k {
			copy(dst[i*full:][:width], src[i*ld:])
		}
		return
	}
	src = src[x*ld+l:]
	done := e.columns(width, full, dst, src, ld, k)
	for r := range width {
		row := src[r*ld:][:k]
		for i := done; i < k; i++ {
			dst[i*full+r] = row[i]
		}
	}
}

// tiles computes a block of c, of m rows from i and n columns from j, out of
// panels of the factors.
func (w *workspace[T]) tiles(p *product[T], a, b panels[T], i, m, j, n, k int, add bool) {
	e := w.e
	segment := cmp.Or(p.segment, k)
	for y := 0; y < n; y += e.cols {
		kernels, cols := e.tiles, e.cols
		if n-y <= e.cols/2 && e.narrow != nil {
			kernels, cols = e.narrow, e.cols/2
		}
		bs := b.data[y/e.cols*b.panel:]
		for x := 0; x < m; x += e.rows {
			as := a.data[x/e.rows*a.panel:]
			rows := min(e.rows, m-x)
			c, ldc := p.c[(i+x)*p.ldc+j+y:], p.ldc
			if n-y < cols {
				c, ldc = w.corner(c, ldc, rows, n-y, add), e.cols
			}
			for s := 0; s < k; s += segment {
				kernels[rows-1](segment, &as[s*a.cs], a.rs, a.cs, &bs[s*b.cs], b.cs, &c[0], ldc, flag(add || s > 0), 1, 0, 0)
			}
			if n-y < cols {
				w.store(p.c[(i+x)*p.ldc+j+y:], p.ldc, rows, n-y)
			}
		}
	}
}

// corner returns the tile in w for a part of c that is less than one: with what
// c holds, if the product is added to that.
func (w *workspace[T]) corner(c []T, ldc, rows, cols int, add bool) []T {
	for r := 0; add && r < rows; r++ {
		copy(w.tile[r*w.e.cols:][:cols], c[r*ldc:])
	}
	return w.tile
}

// store copies the part of the tile in w that belongs to c.
func (w *workspace[T]) store(c []T, ldc, rows, cols int) {
	const few = 8 // elements
	for r := range rows {
		to, from := c[r*ldc:][:cols], w.tile[r*w.e.cols:][:cols]
		if cols > few {
			copy(to, from)
			continue
		}
		//lint:ignore S1001 a call of copy takes longer
		for i, v := range from {
			to[i] = v
		}
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
