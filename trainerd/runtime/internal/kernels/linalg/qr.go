package linalg

import (
	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

func buildQR(b *exec.OpConstruction) (exec.Kernel, error) {
	full := b.Bool("full_matrices")
	if exec.ComplexTypes.Has(b.DType("T")) {
		return buildComplexQR(full), nil
	}
	return func(c *exec.KernelContext) error {
		if m, n, ok := noMatrices(c); ok {
			noFactors(c, m, n, full)
		}
		return eachMatrix(c, func(n int, m *mat.Dense) error {
			q, r := qr(m, full)
			storeMatrix(c, 0, n, q)
			storeMatrix(c, 1, n, r)
			return nil
		})
	}, nil
}

// noFactors makes the results for matrices without elements: Q is an identity where all of
// it is asked for.
func noFactors(c *exec.KernelContext, m, n int, full bool) {
	p := min(m, n)
	if full {
		p = m
	}
	outBatch(c, 0, m, p)
	outBatch(c, 1, p, n)
	if full {
		makeIdentities(c.Slot(0), m)
	}
}

// qr is computed with Householder reflections. Its signs are those of LAPACK,
// which TensorFlow's has as well.
func qr(m *mat.Dense, full bool) (q, r *mat.Dense) {
	rows, cols := m.Dims()
	q, r = new(mat.Dense), new(mat.Dense)
	if rows < cols {
		wideQR(m, q, r)
		return q, r
	}
	var f mat.QR
	f.Factorize(m)
	f.QTo(q)
	f.RTo(r)
	if full {
		return q, r
	}
	return q.Slice(0, rows, 0, cols).(*mat.Dense), r.Slice(0, cols, 0, cols).(*mat.Dense)
}

// wideQR factors the square part on the left and applies Q to the rest.
func wideQR(m, q, r *mat.Dense) {
	rows, _ := m.Dims()
	var f mat.QR
	f.Factorize(m.Slice(0, rows, 0, rows))
	f.QTo(q)
	r.Mul(q.T(), m)
	for i := range rows {
		for j := range i {
			r.Set(i, j, 0)
		}
	}
}
