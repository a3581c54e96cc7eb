package cmat

import (
	"math"
	"math/cmplx"
)

// Schur returns an upper triangle t and a unitary q such that m = q*t*q'. It
// fails, with false, if the iteration does not end.
func (m *Matrix) Schur() (t, q *Matrix, ok bool) {
	t, q = m.hessenberg()
	const most = 60 // steps for each row
	n := m.Rows
	for end, steps := n-1, 0; end > 0; steps++ {
		if steps > most*n {
			return nil, nil, false
		}
		start := end
		for start > 0 && !t.deflate(start) {
			start--
		}
		if start == end {
			end--
			continue
		}
		t.qrStep(q, start, end, t.shift(end, steps))
	}
	for i := range n {
		for j := range i {
			t.Set(i, j, 0)
		}
	}
	return t, q, true
}

// deflate clears the element left of the diagonal of row i if it is as good as
// zero.
func (m *Matrix) deflate(i int) bool {
	beside := size1(m.At(i-1, i-1)) + size1(m.At(i, i))
	if size1(m.At(i, i-1)) > 0x1p-52*beside {
		return false
	}
	m.Set(i, i-1, 0)
	return true
}

func size1(z complex128) float64 { return math.Abs(real(z)) + math.Abs(imag(z)) }

// shift returns the eigenvalue of the last two rows that is closer to the last.
func (m *Matrix) shift(end, steps int) complex128 {
	if steps%20 == 10 { // out of a cycle
		return complex(size1(m.At(end, end-1)), 0) + m.At(end, end)
	}
	a, b, c, d := m.At(end-1, end-1), m.At(end-1, end), m.At(end, end-1), m.At(end, end)
	half := (a - d) / 2
	root := cmplx.Sqrt(half*half + b*c)
	one, two := d+half+root, d+half-root
	if cmplx.Abs(one-d) < cmplx.Abs(two-d) {
		return one
	}
	return two
}

// rotation is a unitary matrix of two rows: c, s above -conj(s), c.
type rotation struct {
	c float64
	s complex128
}

// rotationOf returns the rotation that clears b of the column a, b.
func rotationOf(a, b complex128) rotation {
	x, y := cmplx.Abs(a), cmplx.Abs(b)
	if y == 0 {
		return rotation{1, 0}
	}
	if x == 0 {
		return rotation{0, cmplx.Conj(b) / complex(y, 0)}
	}
	r := math.Hypot(x, y)
	return rotation{x / r, a / complex(x, 0) * cmplx.Conj(b) / complex(r, 0)}
}

// rows applies g to rows i and i+1, from column from on.
func (m *Matrix) rows(g rotation, i, from int) {
	for j := from; j < m.Rows; j++ {
		a, b := m.At(i, j), m.At(i+1, j)
		m.Set(i, j, complex(g.c, 0)*a+g.s*b)
		m.Set(i+1, j, -cmplx.Conj(g.s)*a+complex(g.c, 0)*b)
	}
}

// columns applies the adjoint of g to columns i and i+1, down to row to.
func (m *Matrix) columns(g rotation, i, to int) {
	for r := range to + 1 {
		a, b := m.At(r, i), m.At(r, i+1)
		m.Set(r, i, complex(g.c, 0)*a+cmplx.Conj(g.s)*b)
		m.Set(r, i+1, -g.s*a+complex(g.c, 0)*b)
	}
}

// qrStep is one implicit QR step on rows start to end.
func (m *Matrix) qrStep(q *Matrix, start, end int, shift complex128) {
	x, y := m.At(start, start)-shift, m.At(start+1, start)
	for k := start; k < end; k++ {
		g := rotationOf(x, y)
		m.rows(g, k, max(k-1, 0))
		m.columns(g, k, min(k+2, end))
		q.columns(g, k, m.Rows-1)
		if k < end-1 {
			x, y = m.At(k+1, k), m.At(k+2, k)
		}
	}
}

// hessenberg returns a matrix without elements below the one left of the
// diagonal, and the unitary q that leads back to m.
func (m *Matrix) hessenberg() (h, q *Matrix) {
	h, q = m.Clone(), Identity(m.Rows)
	for k := range m.Rows - 1 {
		for i := m.Rows - 2; i > k; i-- {
			if h.At(i+1, k) == 0 {
				continue
			}
			g := rotationOf(h.At(i, k), h.At(i+1, k))
			h.rows(g, i, k)
			h.columns(g, i, m.Rows-1)
			q.columns(g, i, m.Rows-1)
			h.Set(i+1, k, 0)
		}
	}
	return h, q
}
