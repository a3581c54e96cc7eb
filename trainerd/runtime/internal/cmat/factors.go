package cmat

import (
	"math"
	"math/cmplx"
)

// Cholesky returns the lower triangle l with l*l' = m, reading only the lower triangle of m.
// It reports false if m is not positive definite.
func (m *Matrix) Cholesky() (l *Matrix, ok bool) {
	l = New(m.Rows, m.Cols)
	for j := range m.Rows {
		for i := j; i < m.Rows; i++ {
			sum := m.At(i, j)
			for k := range j {
				sum -= l.At(i, k) * cmplx.Conj(l.At(j, k))
			}
			if i > j {
				l.Set(i, j, sum/l.At(j, j))
				continue
			}
			if !(real(sum) > 0) {
				return nil, false
			}
			l.Set(j, j, complex(math.Sqrt(real(sum)), 0))
		}
	}
	return l, true
}

// QR returns a unitary q and an upper triangle r with q*r = m. The diagonal of r is real, of
// the signs that LAPACK gives it.
func (m *Matrix) QR() (q, r *Matrix) {
	q, r = Identity(m.Rows), m.Clone()
	for k := range min(m.Rows, m.Cols) {
		v := r.column(k, k)
		tau, beta := reflection(v)
		r.reflect(v, cmplx.Conj(tau), k, k)
		r.Set(k, k, beta)
		for i := k + 1; i < m.Rows; i++ {
			r.Set(i, k, 0)
		}
		q.reflectColumns(v, tau, k)
	}
	return q, r
}

// column returns a copy of column j from row i down.
func (m *Matrix) column(i, j int) []complex128 {
	v := make([]complex128, m.Rows-i)
	for k := range v {
		v[k] = m.At(i+k, j)
	}
	return v
}

// reflection replaces v by one that begins with 1, and returns tau such that the adjoint of
// 1-tau*v*v' makes v a real multiple beta of the first axis.
func reflection(v []complex128) (tau, beta complex128) {
	rest, head := 0.0, v[0]
	for _, e := range v[1:] {
		rest += real(e)*real(e) + imag(e)*imag(e)
	}
	const smallest = 0x1p-1022
	if rest <= smallest && imag(head)*imag(head) <= smallest {
		clear(v)
		v[0] = 1
		return 0, complex(real(head), 0)
	}
	size := math.Sqrt(real(head)*real(head) + imag(head)*imag(head) + rest)
	if real(head) >= 0 {
		size = -size
	}
	beta = complex(size, 0)
	for i := range v {
		v[i] /= head - beta
	}
	v[0] = 1
	return (beta - head) / beta, beta
}

// reflect multiplies the rows from one on, from a column on, by 1-tau*v*v'.
func (m *Matrix) reflect(v []complex128, tau complex128, row, col int) {
	for j := col; j < m.Cols; j++ {
		var sum complex128
		for i, e := range v {
			sum += cmplx.Conj(e) * m.At(row+i, j)
		}
		for i, e := range v {
			m.Data[(row+i)*m.Cols+j] -= tau * sum * e
		}
	}
}

// reflectColumns multiplies the columns from one on by 1-tau*v*v', on their right.
func (m *Matrix) reflectColumns(v []complex128, tau complex128, col int) {
	for i := range m.Rows {
		row := m.Row(i)[col:]
		var sum complex128
		for j, e := range v {
			sum += row[j] * e
		}
		for j, e := range v {
			row[j] -= tau * sum * cmplx.Conj(e)
		}
	}
}
