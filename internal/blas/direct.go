package blas

import "github.com/trainerd/trainerd/internal/vec"

// Direct multiplies factors where they are, without copies, in the calling
// goroutine: for many small products whose operands are in the cache. Its zero
// value is ready; each goroutine needs its own.
type Direct[T float32 | float64] struct{ corner []T }

// DirectColumns is what the columns of b have to be rounded up to: its rows are
// read to a multiple of this.
const DirectColumns = 16

// PanelColumns returns how many columns of b are used at a time. Where b is
// large, it pays to keep panels of so many columns, each with rows of its own,
// and to do all that needs a panel before the next.
func PanelColumns[T float32 | float64]() int {
	if e := engineOf[T](); e != nil {
		return e.cols
	}
	return DirectColumns
}

// Factors are the operands of a product of M by K and K by N elements. Element
// (i,l) of A is A[i*RowA+l*ColA]; B and C are stored by rows of RowB and RowC
// elements.
//
// With Segments above 1, the inner dimension is so many segments of K, which
// begin NextA and NextB elements apart.
type Factors[T float32 | float64] struct {
	M, N, K    int
	A          []T
	RowA, ColA int
	B          []T
	RowB       int
	C          []T
	RowC       int
	Add        bool // to what C holds

	Segments, NextA, NextB int
}

// Multiply computes C = A*B, or C += A*B. Each element is summed in the order
// of the inner dimension, so that the result does not depend on how a product
// is cut into rows.
func (d *Direct[T]) Multiply(p Factors[T]) {
	if p.M == 0 || p.N == 0 || p.K == 0 {
		return
	}
	p.Segments = max(1, p.Segments)
	_ = p.A[(p.Segments-1)*p.NextA+(p.M-1)*p.RowA+(p.K-1)*p.ColA]
	_ = p.C[(p.M-1)*p.RowC+p.N-1]
	e := engineOf[T]()
	if e == nil {
		p.portable()
		return
	}
	for y := 0; y < p.N; {
		tiles, cols := e.tiles, e.cols
		if p.N-y <= e.cols/2 && e.narrow != nil {
			tiles, cols = e.narrow, e.cols/2
		}
		_ = p.B[(p.Segments-1)*p.NextB+(p.K-1)*p.RowB+y+cols-1]
		d.column(&p, tiles, y, min(cols, p.N-y), cols)
		y += cols
	}
}

// column computes n columns from y, of at most the cols that the tiles have.
func (d *Direct[T]) column(p *Factors[T], tiles []tile[T], y, n, cols int) {
	count := (p.M + len(tiles) - 1) / len(tiles)
	size := (p.M + count - 1) / count
	skipA, skipB := p.NextA-p.K*p.ColA, p.NextB-p.K*p.RowB
	b := &p.B[y]
	for x := 0; x < p.M; x += size {
		rows := min(size, p.M-x)
		a, c := &p.A[x*p.RowA], p.C[x*p.RowC+y:]
		if n == cols {
			tiles[rows-1](p.K, a, p.RowA, p.ColA, b, p.RowB, &c[0], p.RowC, flag(p.Add), p.Segments, skipA, skipB)
			continue
		}
		tile := sized(&d.corner, len(tiles)*cols)
		tiles[rows-1](p.K, a, p.RowA, p.ColA, b, p.RowB, &tile[0], cols, 0, p.Segments, skipA, skipB)
		for r := range rows {
			addRow(c[r*p.RowC:][:n], tile[r*cols:], p.Add)
		}
	}
}

// addRow stores a row, or adds it to what is there.
func addRow[T float32 | float64](c, row []T, add bool) {
	if !add {
		copy(c, row)
		return
	}
	vec.Add(c, c, row)
}

// engineOf returns the kernels for T, or nil.
func engineOf[T float32 | float64]() *engine[T] {
	var e any = single
	if _, ok := e.(*engine[T]); !ok {
		e = double
	}
	found, _ := e.(*engine[T])
	return found
}

// portable is Multiply in Go.
func (p *Factors[T]) portable() {
	for i := range p.M {
		row := p.C[i*p.RowC:][:p.N]
		if !p.Add {
			clear(row)
		}
		for s := range p.Segments {
			for l := range p.K {
				v, from := p.A[s*p.NextA+i*p.RowA+l*p.ColA], p.B[s*p.NextB+l*p.RowB:][:p.N]
				for j, w := range from {
					row[j] += v * w
				}
			}
		}
	}
}

// Transpose makes the rows of src, of cols elements each, columns of dst, whose
// rows have step elements.
func Transpose[T float32 | float64](dst []T, step int, src []T, rows, cols int) {
	done := 0
	if e := engineOf[T](); e != nil && rows > 0 {
		_, _ = src[rows*cols-1], dst[max(0, cols-1)*step+rows-1]
		done = e.columns(rows, step, dst, src, cols, cols)
	}
	for i := range rows {
		for l := done; l < cols; l++ {
			dst[l*step+i] = src[i*cols+l]
		}
	}
}
