package cmat

import (
	"math"
	"math/cmplx"
)

// SVD returns the singular values of m in descending order and, in the columns of u and v,
// as many vectors of both sides: u times the values times v' is m. It rotates pairs of
// columns until all are orthogonal (Hestenes 1958).
func (m *Matrix) SVD() (u *Matrix, values []float64, v *Matrix) {
	if m.Rows < m.Cols {
		v, values, u = m.Adjoint().SVD()
		return u, values, v
	}
	w, x := m.Adjoint(), Identity(m.Cols) // whose rows are the columns of m and v
	const most = 60
	for turned, sweeps := true, 0; turned && sweeps < most; sweeps++ {
		turned = false
		for q := range w.Rows {
			for p := range q {
				if g, ok := orthogonal(w.Row(p), w.Row(q)); ok {
					w.turn(g, p, q)
					x.turn(g, p, q)
					turned = true
				}
			}
		}
	}
	values = make([]float64, w.Rows)
	for i := range values {
		values[i] = size(w.Row(i))
	}
	sortRows(values, w, x)
	for i, s := range values {
		for j := range w.Row(i) {
			w.Row(i)[j] /= complex(max(s, math.SmallestNonzeroFloat64), 0)
		}
	}
	w.orthonormal(rank(values, m.Rows))
	return w.Adjoint(), values, x.Adjoint()
}

// rank is how many of the values, which descend, are more than rounding.
func rank(values []float64, rows int) int {
	n := 0
	for n < len(values) && values[n] > 0 && values[n] > values[0]*float64(rows)*0x1p-52 {
		n++
	}
	return n
}

// size is the Euclidean norm.
func size(v []complex128) float64 {
	sum := 0.0
	for _, e := range v {
		sum += real(e)*real(e) + imag(e)*imag(e)
	}
	return math.Sqrt(sum)
}

// dot is the sum of the products of the conjugates of a with b.
func dot(a, b []complex128) (sum complex128) {
	for i, e := range a {
		sum += cmplx.Conj(e) * b[i]
	}
	return sum
}

// orthogonal returns the rotation that makes two rows orthogonal, false if they are.
func orthogonal(a, b []complex128) (rotation, bool) {
	x, y, z := size(a), size(b), dot(a, b)
	off := cmplx.Abs(z)
	if !(off > 0x1p-52*x*y) || off < math.SmallestNonzeroFloat64/0x1p-52 {
		return rotation{}, false
	}
	zeta := (y + x) / off * (y - x) / 2
	t := math.Copysign(1/(math.Abs(zeta)+math.Hypot(1, zeta)), zeta)
	c := 1 / math.Hypot(1, t)
	return rotation{c, complex(c*t, 0) * cmplx.Conj(z) / complex(off, 0)}, true
}

// turn applies g to rows p and q.
func (m *Matrix) turn(g rotation, p, q int) {
	a, b := m.Row(p), m.Row(q)
	for i, v := range a {
		w := b[i]
		a[i] = complex(g.c, 0)*v - g.s*w
		b[i] = cmplx.Conj(g.s)*v + complex(g.c, 0)*w
	}
}

// sortRows sorts the values in descending order, and the rows with them.
func sortRows(values []float64, of ...*Matrix) {
	for i := range values {
		best := i
		for k := i + 1; k < len(values); k++ {
			if values[k] > values[best] {
				best = k
			}
		}
		if best == i {
			continue
		}
		values[i], values[best] = values[best], values[i]
		for _, m := range of {
			for j := range m.Cols {
				m.Row(i)[j], m.Row(best)[j] = m.Row(best)[j], m.Row(i)[j]
			}
		}
	}
}

// orthonormal replaces all rows but the first few, which are orthogonal, by ones that are
// orthogonal to those and to each other.
func (m *Matrix) orthonormal(first int) {
	axis := 0
	for i := first; i < m.Rows; i++ {
		row := m.Row(i)
		for length := 0.0; length < 0.5/math.Sqrt(float64(m.Cols)); axis++ {
			clear(row)
			row[axis] = 1
			for range 2 {
				for k := range i {
					f := dot(m.Row(k), row)
					for j, v := range m.Row(k) {
						row[j] -= f * v
					}
				}
			}
			length = size(row)
		}
		length := complex(size(row), 0)
		for j := range row {
			row[j] /= length
		}
	}
}

// Complete returns the columns of m, which are orthonormal, and more of them until the
// result is square.
func (m *Matrix) Complete() *Matrix {
	rows := New(m.Rows, m.Rows)
	copy(rows.Data, m.Adjoint().Data)
	rows.orthonormal(m.Cols)
	return rows.Adjoint()
}

// LeastSquares returns the shortest x for which m*x is next to y.
func (m *Matrix) LeastSquares(y *Matrix) *Matrix {
	u, values, v := m.SVD()
	x := u.Adjoint().Mul(y)
	for i := rank(values, max(m.Rows, m.Cols)); i < x.Rows; i++ {
		clear(x.Row(i))
	}
	for i, s := range values {
		x.divideRow(i, complex(max(s, math.SmallestNonzeroFloat64), 0))
	}
	return v.Mul(x)
}
