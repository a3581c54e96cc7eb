package blas

// Direct multiplies factors where they are, without copies, in the calling
// goroutine: for many small products whose operands are in the cache. Its zero
// value is ready; each goroutine needs its own.
type Direct[T float32 | float64] struct{ corner []T }

// DirectColumns is what the columns of b have to be rounded up to: its rows are
// read to a multiple of this.
const DirectColumns = 16

// Multiply computes c = a*b, or c += a*b, of m by k and k by n elements. Element
// (i,l) of a is a[i*rs+l*cs]; b and c are stored by rows of ldb and ldc elements.
// Each element is summed in the order of l, so that the result does not depend on
// how a product is cut into rows.
func (d *Direct[T]) Multiply(m, n, k int, a []T, rs, cs int, b []T, ldb int, c []T, ldc int, add bool) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	_ = a[(m-1)*rs+(k-1)*cs]
	_ = c[(m-1)*ldc+n-1]
	e := engineOf[T]()
	if e == nil {
		multiplyPortable(m, n, k, a, rs, cs, b, ldb, c, ldc, add)
		return
	}
	for y := 0; y < n; {
		tiles, cols := e.tiles, e.cols
		if n-y <= e.cols/2 && e.narrow != nil {
			tiles, cols = e.narrow, e.cols/2
		}
		_ = b[(k-1)*ldb+y+cols-1]
		d.column(tiles, min(cols, n-y), cols, m, k, a, rs, cs, b[y:], ldb, c[y:], ldc, add)
		y += cols
	}
}

// column computes n columns, of at most the cols that the tiles have.
func (d *Direct[T]) column(tiles []tile[T], n, cols, m, k int, a []T, rs, cs int, b []T, ldb int, c []T, ldc int, add bool) {
	count := (m + len(tiles) - 1) / len(tiles)
	size := (m + count - 1) / count
	for x := 0; x < m; x += size {
		rows := min(size, m-x)
		if n == cols {
			tiles[rows-1](k, &a[x*rs], rs, cs, &b[0], ldb, &c[x*ldc], ldc, flag(add))
			continue
		}
		tile := sized(&d.corner, len(tiles)*cols)
		tiles[rows-1](k, &a[x*rs], rs, cs, &b[0], ldb, &tile[0], cols, 0)
		for r := range rows {
			addRow(c[(x+r)*ldc:][:n], tile[r*cols:], add)
		}
	}
}

// addRow stores a row, or adds it to what is there.
func addRow[T float32 | float64](c, row []T, add bool) {
	if !add {
		copy(c, row)
		return
	}
	for i := range c {
		c[i] += row[i]
	}
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

// multiplyPortable is Multiply in Go.
func multiplyPortable[T float32 | float64](m, n, k int, a []T, rs, cs int, b []T, ldb int, c []T, ldc int, add bool) {
	for i := range m {
		row := c[i*ldc:][:n]
		if !add {
			clear(row)
		}
		for l := range k {
			v, from := a[i*rs+l*cs], b[l*ldb:][:n]
			for j, w := range from {
				row[j] += v * w
			}
		}
	}
}
