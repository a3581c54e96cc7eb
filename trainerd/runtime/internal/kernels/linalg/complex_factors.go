package linalg

import (
	"errors"
	"math/cmplx"
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/cmat"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Factors of complex matrices whose shapes differ from those of the matrices. The phases of
// pairs of singular vectors, and of eigenvectors of what is not its own adjoint, are free.

// complexFactors computes the elements of an op's outputs from one matrix.
type complexFactors func(m *cmat.Matrix) ([][]complex128, error)

// eachComplex makes outputs of a type for a batch of matrices, with the dimensions that each
// matrix has in them, and fills them with what f returns. One without dimensions was not asked
// for: it has a zero for each matrix.
func eachComplex(c *exec.KernelContext, as tfpb.DataType, dims [][]int, f complexFactors) error {
	x := c.In(0)
	batch := x.Shape[:len(x.Shape)-2]
	for i, d := range dims {
		elem.Zero(c.Out(i, as, append(slices.Clone(batch), d...)...))
	}
	if x.NumElements() == 0 {
		return nil
	}
	for k := range exec.NumElements(batch) {
		out, err := f(complexMatrixAt(x, k))
		if err != nil {
			return c.Invalid("matrix %d: %v", k, err)
		}
		for i, values := range out {
			if dims[i] != nil {
				storeComplex(c.Slot(i), k, values)
			}
		}
	}
	return nil
}

var errNotFinite = errors.New("it is not finite")

func buildComplexQR(full bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		m, n, err := sides(c)
		if err != nil {
			return err
		}
		p := min(m, n)
		if full {
			p = m
		}
		if c.In(0).NumElements() == 0 {
			noFactors(c, m, n, full)
			return nil
		}
		return eachComplex(c, c.In(0).DType, [][]int{{m, p}, {p, n}}, func(m *cmat.Matrix) ([][]complex128, error) {
			q, r := m.QR()
			return [][]complex128{q.Columns(p).Data, r.Data[:p*n]}, nil
		})
	}
}

// sides returns the size of the matrices of input 0.
func sides(c *exec.KernelContext) (rows, cols int, err error) {
	x := c.In(0)
	if len(x.Shape) < 2 {
		return 0, 0, c.Invalid("%s holds no matrix", x.Describe())
	}
	c.CheckSize([]int{x.Dim(-2), x.Dim(-1)}, 16)
	return x.Dim(-2), x.Dim(-1), nil
}

// buildComplexEigen is for matrices that are their own adjoints: Eigen's way again.
func buildComplexEigen(vectors bool, precision float64) exec.Kernel {
	return func(c *exec.KernelContext) error {
		if _, err := squares(c); err != nil {
			return err
		}
		n := c.In(0).Dim(-1)
		dims := [][]int{{n}, nil}
		if vectors {
			dims[1] = []int{n, n}
		}
		return eachComplex(c, c.In(0).DType, dims, func(m *cmat.Matrix) ([][]complex128, error) {
			return complexEigen(m, precision)
		})
	}
}

func complexEigen(m *cmat.Matrix, precision float64) ([][]complex128, error) {
	if !m.Finite() {
		return nil, errNotFinite
	}
	scale := 0.0
	for i := range m.Rows {
		for _, v := range m.Row(i)[:i+1] {
			scale = max(scale, cmplx.Abs(v))
		}
	}
	if scale == 0 {
		scale = 1
	}
	diag, sub, q := m.Combine(complex(1/scale, 0), m, 0).Tridiagonal()
	turned, values, err := (&tridiagonal{diag: diag, sub: sub, q: unitRows(len(diag))}).sorted(precision)
	if err != nil {
		return nil, err
	}
	v := cmat.New(m.Rows, m.Rows)
	list := make([]complex128, len(values))
	for j, column := range turned {
		list[j] = complex(values[j]*scale, 0)
		for i := range m.Rows {
			var sum complex128
			for k, e := range column {
				sum += q.At(i, k) * complex(e, 0)
			}
			v.Set(i, j, sum)
		}
	}
	return [][]complex128{list, v.Data}, nil
}

// buildGeneralEigen builds the op on any square matrices, whose eigenvalues are complex.
func buildGeneralEigen(b *exec.OpConstruction) (exec.Kernel, error) {
	vectors, as := b.Bool("compute_v"), b.DType("Tout")
	if !exec.ComplexTypes.Has(as) {
		b.Fail("no kernel for Tout=%s", exec.TypeName(as))
	}
	return func(c *exec.KernelContext) error {
		if _, err := squares(c); err != nil {
			return err
		}
		n := c.In(0).Dim(-1)
		dims := [][]int{{n}, nil}
		if vectors {
			dims[1] = []int{n, n}
		}
		return eachComplex(c, as, dims, func(m *cmat.Matrix) ([][]complex128, error) {
			if !m.Finite() {
				return nil, errNotFinite
			}
			values, v, err := m.Eigen()
			if err != nil {
				return nil, err
			}
			return [][]complex128{values, v.Data}, nil
		})
	}, nil
}

func buildComplexSVD(vectors, full bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		rows, cols, err := sides(c)
		if err != nil {
			return err
		}
		if c.In(0).NumElements() == 0 && vectors {
			noSingularValues(c, rows, cols, full)
			return nil
		}
		p := min(rows, cols)
		dims := [][]int{{p}, nil, nil}
		switch {
		case full && vectors:
			dims[1], dims[2] = []int{rows, rows}, []int{cols, cols}
		case vectors:
			dims[1], dims[2] = []int{rows, p}, []int{cols, p}
		}
		return eachComplex(c, c.In(0).DType, dims, func(m *cmat.Matrix) ([][]complex128, error) {
			if !m.Finite() {
				return nil, errNotFinite
			}
			u, values, v := m.SVD()
			if full {
				u, v = u.Complete(), v.Complete()
			}
			list := make([]complex128, p)
			for i, s := range values {
				list[i] = complex(s, 0)
			}
			return [][]complex128{list, u.Data, v.Data}, nil
		})
	}
}

// complexLeastSquares solves by the normal equations if fast is set, else by singular values,
// which gives the shortest of the solutions.
func complexLeastSquares(m, y *cmat.Matrix, l2 float64, fast bool) (*cmat.Matrix, error) {
	if !m.Finite() {
		return nil, errNotFinite
	}
	if !fast {
		return m.LeastSquares(y), nil
	}
	tall, right := m.Rows >= m.Cols, y
	gram := m.Mul(m.Adjoint())
	if tall {
		gram, right = m.Adjoint().Mul(m), m.Adjoint().Mul(y)
	}
	l, ok := gram.Combine(1, cmat.Identity(gram.Rows), complex(l2, 0)).Cholesky()
	if !ok {
		return nil, errors.New("it has not the full rank")
	}
	right = right.Clone()
	l.SolveLower(right)
	l.Adjoint().SolveUpper(right)
	if tall {
		return right, nil
	}
	return m.Adjoint().Mul(right), nil
}
