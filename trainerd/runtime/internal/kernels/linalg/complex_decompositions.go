package linalg

import (
	"math"
	"math/cmplx"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/cmat"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// complexDecomposition is what a decomposition computes from complex matrices.
type complexDecomposition func(a *decompositionAttrs, in []*cmat.Matrix) ([]*cmat.Matrix, error)

// runComplex computes one matrix of the batch after the other.
func (w *decomposing) runComplex(c *exec.KernelContext) error {
	in := make([]*cmat.Matrix, len(w.in))
	for k := range w.count {
		for i, t := range w.in {
			in[i] = complexMatrixAt(t, k)
		}
		out, err := w.d.complex(w.attrs, in)
		if err != nil {
			return c.Invalid("matrix %d: %v", k, err)
		}
		for i, m := range out {
			storeComplex(w.out[i], k, m.Data)
		}
	}
	return nil
}

// complexMatrixAt returns matrix k of a batch.
func complexMatrixAt(t *exec.Tensor, k int) *cmat.Matrix {
	m := cmat.New(t.Dim(-2), t.Dim(-1))
	for i := range m.Data {
		m.Data[i] = complexAt(t, k*len(m.Data)+i)
	}
	return m
}

// storeComplex makes the values the k-th of a batch.
func storeComplex(t *exec.Tensor, k int, values []complex128) {
	for i, v := range values {
		setComplex(t, k*len(values)+i, v)
	}
}

func complexNumber(v complex128) *cmat.Matrix {
	return &cmat.Matrix{Rows: 1, Cols: 1, Data: []complex128{v}}
}

func complexCholesky(_ *decompositionAttrs, in []*cmat.Matrix) ([]*cmat.Matrix, error) {
	l, ok := in[0].Cholesky()
	if !ok {
		l = in[0]
		for i := range l.Rows {
			for j := range l.Row(i) {
				l.Set(i, j, 0)
				if j <= i {
					l.Set(i, j, cmplx.NaN())
				}
			}
		}
	}
	return []*cmat.Matrix{l}, nil
}

func complexInverse(a *decompositionAttrs, in []*cmat.Matrix) ([]*cmat.Matrix, error) {
	return complexSolve(a, append(in, cmat.Identity(in[0].Rows)))
}

func complexSolve(a *decompositionAttrs, in []*cmat.Matrix) ([]*cmat.Matrix, error) {
	m := in[0]
	if a.adjoint {
		m = m.Adjoint()
	}
	x, err := m.Solve(in[1])
	return []*cmat.Matrix{x}, err
}

func complexTriangularSolve(a *decompositionAttrs, in []*cmat.Matrix) ([]*cmat.Matrix, error) {
	m, x := in[0], in[1]
	if a.adjoint {
		m = m.Adjoint()
	}
	if a.lower != a.adjoint {
		m.SolveLower(x)
	} else {
		m.SolveUpper(x)
	}
	return []*cmat.Matrix{x}, nil
}

func complexDeterminant(a *decompositionAttrs, in []*cmat.Matrix) ([]*cmat.Matrix, error) {
	out, err := complexLogDeterminant(a, in)
	if err == nil {
		out = []*cmat.Matrix{complexNumber(out[0].Data[0] * cmplx.Exp(out[1].Data[0]))}
	}
	return out, err
}

// complexLogDeterminant gives a number of size 1, and the logarithm of the magnitude.
func complexLogDeterminant(_ *decompositionAttrs, in []*cmat.Matrix) ([]*cmat.Matrix, error) {
	m, sign, log := in[0], complex128(1), 0.0
	perm, err := m.LU()
	if err != nil {
		return []*cmat.Matrix{complexNumber(0), complexNumber(complex(math.Inf(-1), 0))}, nil
	}
	for i := range perm {
		v := m.At(i, i)
		sign *= v / complex(cmplx.Abs(v), 0)
		log += math.Log(cmplx.Abs(v))
		for perm[i] != i {
			k := perm[i]
			perm[i], perm[k] = perm[k], k
			sign = -sign
		}
	}
	return []*cmat.Matrix{complexNumber(sign), complexNumber(complex(log, 0))}, nil
}
