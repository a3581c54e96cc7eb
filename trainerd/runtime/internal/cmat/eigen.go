package cmat

import "math/cmplx"

// Tridiagonal returns the diagonals of a real tridiagonal matrix t, and the unitary q, with
// q*t*q' = m. Of m, which is its own adjoint, only the lower triangle is read.
func (m *Matrix) Tridiagonal() (diag, sub []float64, q *Matrix) {
	a, n := New(m.Rows, m.Rows), m.Rows
	for i := range n {
		for j := range i {
			a.Set(i, j, m.At(i, j))
			a.Set(j, i, cmplx.Conj(m.At(i, j)))
		}
		a.Set(i, i, complex(real(m.At(i, i)), 0))
	}
	q = Identity(n)
	diag, sub = make([]float64, n), make([]float64, max(0, n-1))
	for k := range n - 1 {
		v := a.column(k+1, k)
		tau, beta := reflection(v)
		a.reflect(v, cmplx.Conj(tau), k+1, k)
		a.reflectColumns(v, tau, k+1)
		q.reflectColumns(v, tau, k+1)
		sub[k] = real(beta)
	}
	for i := range n {
		diag[i] = real(a.At(i, i))
	}
	return diag, sub, q
}

// Eigen returns the eigenvalues of a square matrix, the smallest first, and their vectors
// of length 1 in the columns of v.
func (m *Matrix) Eigen() (values []complex128, v *Matrix, err error) {
	t, q, ok := m.Schur()
	if !ok {
		return nil, nil, errSchur
	}
	x, least := Identity(m.Rows), 0x1p-1022+0x1p-52*t.Norm1()
	for k := range m.Rows {
		for i := k - 1; i >= 0; i-- {
			sum := -t.At(i, k)
			for j := i + 1; j < k; j++ {
				sum -= t.At(i, j) * x.At(j, k)
			}
			below := t.At(i, i) - t.At(k, k)
			if below == 0 {
				below = complex(least, 0)
			}
			x.Set(i, k, sum/below)
		}
	}
	rows := q.Mul(x).Adjoint()
	sizes := make([]float64, m.Rows)
	for i := range sizes {
		values = append(values, t.At(i, i))
		sizes[i] = -cmplx.Abs(values[i])
		length := complex(size(rows.Row(i)), 0)
		for j := range rows.Row(i) {
			rows.Row(i)[j] /= length
		}
	}
	list := &Matrix{len(values), 1, values}
	sortRows(sizes, list, rows)
	return list.Data, rows.Adjoint(), nil
}
