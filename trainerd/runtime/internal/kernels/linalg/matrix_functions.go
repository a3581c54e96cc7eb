package linalg

import (
	"math"
	"math/cmplx"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/cmat"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Functions of square matrices in the last two dimensions, and their LU
// factors, computed in double precision.
var matrixFunctionsOps = exec.OpTable{
	"Lu":                {Types: exec.Floats | exec.ComplexTypes, Build: buildLu},
	"MatrixExponential": {Types: exec.Floats | exec.ComplexTypes, Build: buildMatrixFunction((*cmat.Matrix).Exp)},
	"MatrixLogarithm":   {Types: exec.ComplexTypes, Build: buildMatrixFunction((*cmat.Matrix).Log)},
	"MatrixSquareRoot":  {Types: exec.Floats | exec.ComplexTypes, Build: buildMatrixFunction((*cmat.Matrix).Sqrt)},
}

// complexAt returns element i of a tensor of floats or complex numbers.
func complexAt(t *exec.Tensor, i int) complex128 {
	switch t.DType {
	case exec.Complex64:
		return complex128(exec.Elems[complex64](t)[i])
	case exec.Complex128:
		return exec.Elems[complex128](t)[i]
	}
	return complex(t.FloatAt(i), 0)
}

// setComplex stores an element in one; floats take the real part.
func setComplex(t *exec.Tensor, i int, v complex128) {
	switch t.DType {
	case exec.Complex64:
		exec.Elems[complex64](t)[i] = complex64(v)
	case exec.Complex128:
		exec.Elems[complex128](t)[i] = v
	default:
		elem.SetNumber(t, i, real(v))
	}
}

// squares returns the number of square matrices in input 0, and bails for a
// batch that needs too much memory.
func squares(c *exec.KernelContext) (int, error) {
	x := c.In(0)
	if len(x.Shape) < 2 || x.Dim(-1) != x.Dim(-2) {
		return 0, c.Invalid("Input matrix must be square, not %s", x.Describe())
	}
	n := x.Dim(-1)
	c.CheckSize([]int{n, n}, 16)
	return exec.NumElements(x.Shape[:len(x.Shape)-2]), nil
}

func buildMatrixFunction(f func(*cmat.Matrix) (*cmat.Matrix, error)) func(*exec.OpConstruction) (exec.Kernel, error) {
	return exec.WithoutAttrs(func(c *exec.KernelContext) error {
		batch, err := squares(c)
		if err != nil {
			return err
		}
		x := c.In(0)
		d := c.OutLike(0, x.DType, x)
		if x.NumElements() == 0 {
			return nil
		}
		for k := range batch {
			m := complexMatrixAt(x, k)
			r := m
			if m.Finite() {
				if r, err = f(m); err != nil {
					return c.Invalid("matrix %d: %v", k, err)
				}
			}
			if !r.Finite() || exec.Floats.Has(x.DType) && !realEnough(r) {
				for i := range r.Data {
					r.Data[i] = cmplx.NaN()
				}
			}
			for i, v := range r.Data {
				setComplex(d, k*len(r.Data)+i, v)
			}
		}
		return nil
	})
}

// realEnough reports whether the imaginary parts are but rounding. The root of
// a real matrix is complex if an eigenvalue is negative: no number in a real
// tensor.
func realEnough(m *cmat.Matrix) bool {
	size, imaginary := 0.0, 0.0
	for _, v := range m.Data {
		size, imaginary = max(size, cmplx.Abs(v)), max(imaginary, math.Abs(imag(v)))
	}
	return imaginary <= 1e-6*size
}

// buildLu builds the factors in one matrix, and the rows that its rows come
// from.
func buildLu(b *exec.OpConstruction) (exec.Kernel, error) {
	index := b.DType("output_idx_type")
	if !exec.Indices.Has(index) {
		b.Fail("no kernel for output_idx_type=%s", exec.TypeName(index))
	}
	return func(c *exec.KernelContext) error {
		batch, err := squares(c)
		if err != nil {
			return err
		}
		x := c.In(0)
		d, rows := c.OutLike(0, x.DType, x), c.Out(1, index, x.Shape[:len(x.Shape)-1]...)
		if x.NumElements() == 0 {
			return nil
		}
		for k := range batch {
			m := complexMatrixAt(x, k)
			perm, err := m.LU()
			if err != nil {
				return c.Invalid("Input is not invertible. (matrix %d)", k)
			}
			for i, v := range m.Data {
				setComplex(d, k*len(m.Data)+i, v)
			}
			for i, from := range perm {
				exec.SetInt(rows, k*m.Rows+i, from)
			}
		}
		return nil
	}, nil
}
