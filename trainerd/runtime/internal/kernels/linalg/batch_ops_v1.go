package linalg

import (
	"gonum.org/v1/gonum/mat"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// The first forms of ops on matrices, as graphs of the first releases have
// them. Those on batches had names of their own.
var batchV1Ops = exec.OpTable{
	"BatchCholesky":              {Types: floatsOrComplex, Build: choleskyFactor.build},
	"BatchCholeskyGrad":          {Types: exec.Floats, Build: choleskyGradient.build},
	"BatchMatrixBandPart":        {Types: exec.ValueTypes, Build: exec.WithoutAttrs(bandPart)},
	"BatchMatrixDeterminant":     {Types: floatsOrComplex, Build: matrixDeterminant.build},
	"BatchMatrixDiag":            {Types: exec.ValueTypes, Build: exec.WithoutAttrs(matrixDiag)},
	"BatchMatrixDiagPart":        {Types: exec.ValueTypes, Build: exec.WithoutAttrs(matrixDiagPart)},
	"BatchMatrixInverse":         {Types: floatsOrComplex, Build: matrixInverse.build},
	"BatchMatrixSetDiag":         {Types: exec.ValueTypes, Build: exec.WithoutAttrs(matrixSetDiag)},
	"BatchMatrixSolve":           {Types: floatsOrComplex, Build: matrixSolve.build},
	"BatchMatrixSolveLs":         {Types: floatsOrComplex, Build: buildLeastSquares},
	"BatchMatrixTriangularSolve": {Types: floatsOrComplex, Build: matrixTriangularSolve.build},
	"BatchSelfAdjointEig":        {Types: exec.Floats, Build: buildEigenRows},
	"BatchSelfAdjointEigV2":      {Types: floatsOrComplex, Build: buildEigen},
	"BatchSvd":                   {Types: floatsOrComplex, Build: buildSVD},

	"CholeskyGrad":   {Types: exec.Floats, Build: choleskyGradient.build},
	"SelfAdjointEig": {Types: exec.Floats, Build: buildEigenRows},
}

// buildEigenRows builds the op whose result has the eigenvalues in its first
// row and the vectors below.
func buildEigenRows(b *exec.OpConstruction) (exec.Kernel, error) {
	precision := 0x1p-52
	if b.DType("T") == exec.Float32 {
		precision = 0x1p-23
	}
	return func(c *exec.KernelContext) error {
		if n, _, ok := noMatrices(c); ok {
			outBatch(c, 0, n+1, n)
		}
		return eachSquare(c, func(n int, m *mat.Dense) error {
			values, q, err := eigen(m, precision, true)
			if err != nil {
				return c.Invalid("matrix %d: %v", n, err)
			}
			all := mat.NewDense(len(values)+1, len(values), nil)
			all.SetRow(0, values)
			all.Slice(1, len(values)+1, 0, len(values)).(*mat.Dense).Copy(q)
			storeMatrix(c, 0, n, all)
			return nil
		})
	}, nil
}
