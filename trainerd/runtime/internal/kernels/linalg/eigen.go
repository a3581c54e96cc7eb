package linalg

import (
	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Eigenvalues, computed as Eigen does, for the signs of the vectors.
var eigenOps = exec.OpTable{
	"Eig":              {Types: floatsOrComplex, Build: buildGeneralEigen},
	"SelfAdjointEigV2": {Types: floatsOrComplex, Build: buildEigen},
}

// buildEigen builds the op on symmetric matrices, reading only the lower
// triangle.
func buildEigen(b *exec.OpConstruction) (exec.Kernel, error) {
	vectors := b.Bool("compute_v")
	precision := 0x1p-52
	switch b.DType("T") {
	case exec.Float32, exec.Complex64:
		precision = 0x1p-23
	}
	if exec.ComplexTypes.Has(b.DType("T")) {
		return buildComplexEigen(vectors, precision), nil
	}
	return func(c *exec.KernelContext) error {
		if n, _, ok := noMatrices(c); ok {
			outBatch(c, 0, n)
			outBatch(c, 1, n, n)
		}
		if err := eachSquare(c, func(n int, m *mat.Dense) error {
			values, q, err := eigen(m, precision, vectors)
			if err != nil {
				return c.Invalid("matrix %d: %v", n, err)
			}
			storeVector(c, 0, n, values)
			if vectors {
				storeMatrix(c, 1, n, q)
			}
			return nil
		}); err != nil {
			return err
		}
		if !vectors {
			elem.Zero(c.Out(1, c.In(0).DType))
		}
		return nil
	}, nil
}

// eachSquare calls f for every matrix of a batch of square ones.
func eachSquare(c *exec.KernelContext, f func(n int, m *mat.Dense) error) error {
	x := c.In(0)
	if len(x.Shape) < 2 || x.Dim(-1) != x.Dim(-2) {
		return c.Invalid("%s holds no square matrices", x.Describe())
	}
	return eachMatrix(c, f)
}

// noMatrices reports whether input 0 is a batch without elements, and the size
// of its matrices.
func noMatrices(c *exec.KernelContext) (rows, cols int, ok bool) {
	x := c.In(0)
	if len(x.Shape) < 2 || x.NumElements() > 0 {
		return 0, 0, false
	}
	return x.Dim(-2), x.Dim(-1), true
}

// outBatch makes output i zeros of the given shape for each matrix of input 0.
func outBatch(c *exec.KernelContext, i int, dims ...int) {
	x := c.In(0)
	elem.Zero(c.Out(i, x.DType, append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...), dims...)...))
}

// eachMatrix calls f for every matrix of a batch, for none when there are no
// elements.
func eachMatrix(c *exec.KernelContext, f func(n int, m *mat.Dense) error) error {
	x := c.In(0)
	if len(x.Shape) < 2 {
		return c.Invalid("%s holds no matrix", x.Describe())
	}
	if x.NumElements() == 0 {
		return nil
	}
	for n := range exec.NumElements(x.Shape[:len(x.Shape)-2]) {
		if err := f(n, matrixAt(x, n)); err != nil {
			return err
		}
	}
	return nil
}

// storeVector makes v the n-th of output i.
func storeVector(c *exec.KernelContext, i, n int, v []float64) {
	x := c.In(0)
	if n == 0 {
		c.Out(i, x.DType, append(append(c.ScratchInts(0, 0), x.Shape[:len(x.Shape)-2]...), len(v))...)
	}
	d := c.Slot(i)
	for k, e := range v {
		elem.SetNumber(d, n*len(v)+k, e)
	}
}
