// Package cmat has square matrices of complex numbers, their factors, and
// functions of them: what gonum has for real ones only.
package cmat

import (
	"errors"
	"math"
	"math/cmplx"
)

// Matrix is a square matrix, row after row.
type Matrix struct {
	N    int
	Data []complex128
}

// New returns a matrix of zeros.
func New(n int) *Matrix { return &Matrix{n, make([]complex128, n*n)} }

// Identity returns the matrix that changes nothing.
func Identity(n int) *Matrix {
	m := New(n)
	for i := range n {
		m.Data[i*n+i] = 1
	}
	return m
}

// At returns an element.
func (m *Matrix) At(i, j int) complex128 { return m.Data[i*m.N+j] }

// Set changes an element.
func (m *Matrix) Set(i, j int, v complex128) { m.Data[i*m.N+j] = v }

// Clone returns a copy.
func (m *Matrix) Clone() *Matrix { return &Matrix{m.N, append([]complex128(nil), m.Data...)} }

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
	n := m.N
	out := New(n)
	for i := range n {
		to := out.Data[i*n : (i+1)*n]
		for k, v := range m.Data[i*n : (i+1)*n] {
			if v == 0 {
				continue
			}
			for j, w := range b.Data[k*n : (k+1)*n] {
				to[j] += v * w
			}
		}
	}
	return out
}

// Adjoint returns the conjugate transpose.
func (m *Matrix) Adjoint() *Matrix {
	out := New(m.N)
	for i := range m.N {
		for j := range m.N {
			out.Set(j, i, cmplx.Conj(m.At(i, j)))
		}
	}
	return out
}

// Combine returns a*m + b*x.
func (m *Matrix) Combine(a complex128, x *Matrix, b complex128) *Matrix {
	out := New(m.N)
	for i, v := range m.Data {
		out.Data[i] = a*v + b*x.Data[i]
	}
	return out
}

// Norm1 returns the largest sum of the sizes of a column's elements.
func (m *Matrix) Norm1() float64 {
	most := 0.0
	for j := range m.N {
		sum := 0.0
		for i := range m.N {
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
	n := m.N
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
	n := m.N
	x := New(n)
	for i, from := range perm {
		copy(x.Data[i*n:(i+1)*n], b.Data[from*n:(from+1)*n])
	}
	for i := range n {
		for k := range i {
			x.subtractRow(i, k, lu.At(i, k))
		}
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			x.subtractRow(i, k, lu.At(i, k))
		}
		for j := range n {
			x.Data[i*n+j] /= lu.At(i, i)
		}
	}
	return x, nil
}

// subtractRow subtracts f times row k from row i.
func (m *Matrix) subtractRow(i, k int, f complex128) {
	n := m.N
	for j := range n {
		m.Data[i*n+j] -= f * m.Data[k*n+j]
	}
}
