package linalg

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// What is computed from the triangular factors of a matrix.

// cholesky reads only the lower triangle, as in TensorFlow.
func cholesky(_ *decompositionAttrs, in, out []blas64.General, _ []int) error {
	l, n := out[0], out[0].Rows
	for i := range n {
		row := l.Data[i*n:][:n]
		copy(row, in[0].Data[i*n:][:i+1])
		clear(row[i+1:])
	}
	if _, ok := lapack64.Potrf(blas64.Symmetric{N: n, Stride: l.Stride, Data: l.Data, Uplo: blas.Lower}); ok {
		return nil
	}
	// A matrix that is not positive definite has no factor.
	for i := range n {
		for j := range i + 1 {
			l.Data[i*n+j] = math.NaN()
		}
	}
	return nil
}

// factor replaces a matrix by its triangular factors, and reports whether it is invertible.
func factor(m blas64.General, pivots []int) bool {
	return m.Rows == 0 || lapack64.Getrf(m, pivots)
}

func inverse(a *decompositionAttrs, in, out []blas64.General, pivots []int) error {
	clear(out[0].Data)
	for i := range out[0].Rows {
		out[0].Data[i*(out[0].Cols+1)] = 1
	}
	return solveInto(a, in[0], out[0], pivots)
}

func solve(a *decompositionAttrs, in, out []blas64.General, pivots []int) error {
	copy(out[0].Data, in[1].Data)
	return solveInto(a, in[0], out[0], pivots)
}

// solveInto replaces the right sides by the solutions.
func solveInto(a *decompositionAttrs, m, x blas64.General, pivots []int) error {
	if a.adjoint {
		transposeInPlace(m)
	}
	// Not the determinant tells it: that of many small numbers is zero to the machine.
	if !factor(m, pivots) {
		return errors.New("it is not invertible")
	}
	lapack64.Getrs(blas.NoTrans, m, x, pivots)
	return nil
}

func transposeInPlace(m blas64.General) {
	for i := range m.Rows {
		for j := range i {
			p, q := i*m.Stride+j, j*m.Stride+i
			m.Data[p], m.Data[q] = m.Data[q], m.Data[p]
		}
	}
}

func determinant(_ *decompositionAttrs, in, out []blas64.General, pivots []int) error {
	sign, log := signAndLog(in[0], pivots)
	out[0].Data[0] = math.Exp(log) * sign
	return nil
}

func logDeterminant(_ *decompositionAttrs, in, out []blas64.General, pivots []int) error {
	sign, log := signAndLog(in[0], pivots)
	if math.IsInf(log, -1) {
		sign = 0
	}
	out[0].Data[0], out[1].Data[0] = sign, log
	return nil
}

// signAndLog returns the sign of the determinant, and the logarithm of its magnitude.
func signAndLog(m blas64.General, pivots []int) (sign, log float64) {
	factor(m, pivots)
	sign = 1
	for i := range m.Rows {
		v := m.Data[i*(m.Stride+1)]
		if v < 0 {
			sign = -sign
		}
		if pivots[i] != i {
			sign = -sign
		}
		log += math.Log(math.Abs(v))
	}
	return sign, log
}

func triangularSolve(a *decompositionAttrs, in, out []blas64.General, _ []int) error {
	uplo, trans := blas.Upper, blas.NoTrans
	if a.lower {
		uplo = blas.Lower
	}
	if a.adjoint {
		trans = blas.Trans
	}
	copy(out[0].Data, in[1].Data)
	m := in[0]
	blas64.Trsm(blas.Left, trans, 1, blas64.Triangular{N: m.Rows, Stride: m.Stride, Data: m.Data, Uplo: uplo, Diag: blas.NonUnit}, out[0])
	return nil
}

// choleskyGrad is the gradient of the factor l, by the symmetric matrix: half
// of inv(l)' * (p + p') * inv(l), p being the lower half of l' * g with half of
// its diagonal.
func choleskyGrad(_ *decompositionAttrs, in, out []blas64.General, _ []int) error {
	n := in[0].Rows
	if in[1].Cols != n {
		return errors.New("its gradient is not square")
	}
	for _, m := range in {
		for i := range n {
			clear(m.Data[i*n+i+1:][:n-i-1])
		}
	}
	l, g := mat.NewDense(n, n, in[0].Data), mat.NewDense(n, n, in[1].Data)
	var p, half mat.Dense
	p.Mul(l.T(), g)
	for i := range n {
		for j := range i + 1 {
			p.Set(j, i, p.At(i, j))
		}
	}
	inv := identity(n)
	blas64.Trsm(blas.Left, blas.NoTrans, 1, blas64.Triangular{N: n, Stride: n, Data: in[0].Data, Uplo: blas.Lower, Diag: blas.NonUnit}, inv.RawMatrix())
	half.Mul(inv.T(), &p)
	result := mat.NewDense(n, n, out[0].Data)
	result.Mul(&half, inv)
	result.Scale(0.5, result)
	return nil
}
