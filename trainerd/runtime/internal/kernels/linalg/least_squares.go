package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/cmat"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Singular values, and least squares.
var leastSquaresOps = exec.OpTable{
	"Svd":           {Types: floatsOrComplex, Build: buildSVD},
	"MatrixSolveLs": {Types: floatsOrComplex, Build: buildLeastSquares},
}

// buildSVD builds the op whose outputs are the singular values in descending
// order and the vectors of both sides. The sign of a pair of vectors is free.
func buildSVD(b *exec.OpConstruction) (exec.Kernel, error) {
	vectors, full := b.Bool("compute_uv"), b.Bool("full_matrices")
	if exec.ComplexTypes.Has(b.DType("T")) {
		return buildComplexSVD(vectors, full), nil
	}
	kind := mat.SVDNone
	switch {
	case vectors && full:
		kind = mat.SVDFull
	case vectors:
		kind = mat.SVDThin
	}
	return func(c *exec.KernelContext) error {
		if m, n, ok := noMatrices(c); ok {
			noSingularValues(c, m, n, full)
		}
		if err := eachMatrix(c, func(n int, m *mat.Dense) error {
			var svd mat.SVD
			if !finiteMatrix(m) || !svd.Factorize(m, kind) {
				return c.Invalid("matrix %d has no singular values", n)
			}
			storeVector(c, 0, n, svd.Values(nil))
			if vectors {
				var u, v mat.Dense
				svd.UTo(&u)
				svd.VTo(&v)
				storeMatrix(c, 1, n, &u)
				storeMatrix(c, 2, n, &v)
			}
			return nil
		}); err != nil {
			return err
		}
		for i := 1; i < 3 && !vectors; i++ {
			elem.Zero(c.Out(i, c.In(0).DType))
		}
		return nil
	}, nil
}

// noSingularValues makes the results for matrices without elements: squares are
// identities where all vectors are asked for.
func noSingularValues(c *exec.KernelContext, m, n int, full bool) {
	p := min(m, n)
	outBatch(c, 0, p)
	if !full {
		outBatch(c, 1, m, p)
		outBatch(c, 2, n, p)
		return
	}
	for i, size := range []int{m, n} {
		outBatch(c, i+1, size, size)
		makeIdentities(c.Slot(i+1), size)
	}
}

// makeIdentities makes each matrix of a batch the identity.
func makeIdentities(t *exec.Tensor, size int) {
	for k := range t.NumElements() {
		elem.SetNumber(t, k, elem.OneIf[float64](k%(size*size)%(size+1) == 0))
	}
}

func finiteMatrix(m *mat.Dense) bool {
	for _, v := range m.RawMatrix().Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// buildLeastSquares builds the op that solves systems of too many or too few
// equations: by the normal equations if fast is set, else by singular values.
func buildLeastSquares(b *exec.OpConstruction) (exec.Kernel, error) {
	fast := b.Bool("fast")
	return func(c *exec.KernelContext) error {
		x, y, l2 := c.In(0), c.In(1), c.In(2)
		r := len(x.Shape)
		if r < 2 || len(y.Shape) != r || !exec.SameShape(x.Shape[:r-1], y.Shape[:r-1]) || l2.NumElements() != 1 {
			return c.Invalid("%s and %s are not systems of equations", x.Describe(), y.Describe())
		}
		if x.NumElements() == 0 || y.NumElements() == 0 {
			outBatch(c, 0, x.Dim(-1), y.Dim(-1))
			return nil
		}
		if exec.ComplexTypes.Has(x.DType) {
			n := 0
			return eachComplex(c, x.DType, [][]int{{x.Dim(-1), y.Dim(-1)}}, func(m *cmat.Matrix) ([][]complex128, error) {
				out, err := complexLeastSquares(m, complexMatrixAt(y, n), exec.Elems[float64](l2)[0], fast)
				if err != nil {
					return nil, err
				}
				n++
				return [][]complex128{out.Data}, nil
			})
		}
		return eachMatrix(c, func(n int, m *mat.Dense) error {
			solve := leastSquares
			if fast {
				solve = normalEquations
			}
			out, err := solve(m, matrixAt(y, n), exec.Elems[float64](l2)[0])
			if err != nil {
				return c.Invalid("matrix %d: %v", n, err)
			}
			storeMatrix(c, 0, n, out)
			return nil
		})
	}, nil
}

// normalEquations solves with the smaller of the products of m with itself.
func normalEquations(m, y *mat.Dense, l2 float64) (*mat.Dense, error) {
	rows, cols := m.Dims()
	tall := rows >= cols
	var gram, right, out mat.Dense
	if tall {
		gram.Mul(m.T(), m)
		right.Mul(m.T(), y)
	} else {
		gram.Mul(m, m.T())
		right.CloneFrom(y)
	}
	n, _ := gram.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, gram.At(i, j))
		}
		s.SetSym(i, i, gram.At(i, i)+l2)
	}
	var ch mat.Cholesky
	if !finiteMatrix(&gram) || !ch.Factorize(s) {
		return nil, fmt.Errorf("it has not the full rank")
	}
	if err := ch.SolveTo(&out, &right); err != nil {
		if _, poor := err.(mat.Condition); !poor {
			return nil, err
		}
	}
	if !tall {
		var back mat.Dense
		back.Mul(m.T(), &out)
		return &back, nil
	}
	return &out, nil
}

// leastSquares gives the shortest of the solutions.
func leastSquares(m, y *mat.Dense, _ float64) (*mat.Dense, error) {
	var svd mat.SVD
	if !finiteMatrix(m) || !finiteMatrix(y) || !svd.Factorize(m, mat.SVDThin) {
		return nil, fmt.Errorf("it has no singular values")
	}
	rows, cols := m.Dims()
	_, columns := y.Dims()
	rank := svd.Rank(float64(max(rows, cols)) * 0x1p-52)
	if rank == 0 {
		return mat.NewDense(cols, columns, nil), nil
	}
	var out mat.Dense
	svd.SolveTo(&out, y, rank)
	return &out, nil
}
