// Package cmat has decompositions and solvers of complex matrices, and functions of square ones:
// gonum has these for real matrices only.
package cmat

import (
	"errors"
	"math"
	"math/cmplx"
)

// Matrix is a matrix, row after row.
type Matrix struct {
	Rows, Cols int
	Data       []complex128
}

// New returns a matrix of zeros.
func New(rows, cols int) *Matrix { return &Matrix{rows, cols, make([]complex128, rows*cols)} }

// Identity returns the matrix that changes nothing.
func Identity(n int) *Matrix {
	m := New(n, n)
	for i := range n {
		m.Data[i*n+i] = 1
	}
	return m
}

// At returns an element.
func (m *Matrix) At(i, j int) complex128 { return m.Data[i*m.Cols+j] }

// Set changes an element.
func (m *Matrix) Set(i, j int, v complex128) { m.Data[i*m.Cols+j] = v }

// Row returns row i, which is part of m.
func (m *Matrix) Row(i int) []complex128 { return m.Data[i*m.Cols:][:m.Cols:m.Cols] }

// Clone returns a copy.
func (m *Matrix) Clone() *Matrix {
	return &Matrix{m.Rows, m.Cols, append([]complex128(nil), m.Data...)}
}

// Finite reports whether all elements are numbers.
func (m *Matrix) Finite() bool {
	for _, v := range m.Data {
		if cmplx.IsNaN(v) || cmplx.IsInf(v) {
			return false
		}
	}
	return true
}

// Mul returns m times b.
func (m *Matrix) Mul(b *Matrix) *Matrix {
	out := New(m.Rows, b.Cols)
	for i := range m.Rows {
		to := out.Row(i)
		for k, v := range m.Row(i) {
			if v == 0 {
				continue
			}
			for j, w := range b.Row(k) {
				to[j] += v * w
			}
		}
	}
	return out
}

// Adjoint returns the conjugate transpose.
func (m *Matrix) Adjoint() *Matrix {
	out := New(m.Cols, m.Rows)
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			out.Set(j, i, cmplx.Conj(v))
		}
	}
	return out
}

// Columns returns the first n columns.
func (m *Matrix) Columns(n int) *Matrix {
	out := New(m.Rows, n)
	for i := range m.Rows {
		copy(out.Row(i), m.Row(i))
	}
	return out
}

// Combine returns a*m + b*x.
func (m *Matrix) Combine(a complex128, x *Matrix, b complex128) *Matrix {
	out := New(m.Rows, m.Cols)
	for i, v := range m.Data {
		out.Data[i] = a*v + b*x.Data[i]
	}
	return out
}

// Norm1 returns the largest sum of the sizes of a column's elements.
func (m *Matrix) Norm1() float64 {
	most := 0.0
	for j := range m.Cols {
		sum := 0.0
		for i := range m.Rows {
			sum += cmplx.Abs(m.At(i, j))
		}
		most = math.Max(most, sum)
	}
	return most
}

// ErrSingular is returned for a matrix that has no inverse.
var ErrSingular = errors.New("it is not invertible")

// LU factors m in place to a lower triangle with ones on its diagonal, and an
// upper one. Row i of the product is row perm[i] of m. It fails if a pivot is
// zero.
func (m *Matrix) LU() (perm []int, err error) {
	n := m.Rows
	perm = make([]int, n)
	for i := range perm {
		perm[i] = i
	}
	for k := range n {
		best := k
		for i := k + 1; i < n; i++ {
			if cmplx.Abs(m.At(i, k)) > cmplx.Abs(m.At(best, k)) {
				best = i
			}
		}
		if m.At(best, k) == 0 {
			return nil, ErrSingular
		}
		if best != k {
			perm[k], perm[best] = perm[best], perm[k]
			for j := range n {
				m.Data[k*n+j], m.Data[best*n+j] = m.Data[best*n+j], m.Data[k*n+j]
			}
		}
		for i := k + 1; i < n; i++ {
			f := m.At(i, k) / m.At(k, k)
			m.Set(i, k, f)
			for j := k + 1; j < n; j++ {
				m.Data[i*n+j] -= f * m.Data[k*n+j]
			}
		}
	}
	return perm, nil
}

// Solve returns x with m*x = b.
func (m *Matrix) Solve(b *Matrix) (*Matrix, error) {
	lu := m.Clone()
	perm, err := lu.LU()
	if err != nil {
		return nil, err
	}
	x := New(b.Rows, b.Cols)
	for i, from := range perm {
		copy(x.Row(i), b.Row(from))
	}
	for i := range x.Rows {
		for k := range i {
			x.subtractRow(i, k, lu.At(i, k))
		}
	}
	lu.SolveUpper(x)
	return x, nil
}

// SolveUpper replaces b by x with m*x = b, where m is an upper triangle: what is below its
// diagonal is not read.
func (m *Matrix) SolveUpper(b *Matrix) {
	for i := b.Rows - 1; i >= 0; i-- {
		for k := i + 1; k < b.Rows; k++ {
			b.subtractRow(i, k, m.At(i, k))
		}
		b.divideRow(i, m.At(i, i))
	}
}

// SolveLower is SolveUpper for a lower triangle.
func (m *Matrix) SolveLower(b *Matrix) {
	for i := range b.Rows {
		for k := range i {
			b.subtractRow(i, k, m.At(i, k))
		}
		b.divideRow(i, m.At(i, i))
	}
}

// subtractRow subtracts f times row k from row i.
func (m *Matrix) subtractRow(i, k int, f complex128) {
	to := m.Row(i)
	for j, v := range m.Row(k) {
		to[j] -= f * v
	}
}

func (m *Matrix) divideRow(i int, f complex128) {
	for j := range m.Row(i) {
		m.Row(i)[j] /= f
	}
}
