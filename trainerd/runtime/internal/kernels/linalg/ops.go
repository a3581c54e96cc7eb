// Package linalg has the kernels of the ops on matrices: products,
// decompositions, solvers, eigenvalues, diagonals, and einsum.
package linalg

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		decompositionOps,
		bandedOps,
		eigenOps,
		leastSquaresOps,
		matrixFunctionsOps,
		matmulOps,
		batchV1Ops,
		einsumOps,
		sparseMatmulOps,
		diagonalOps,
	}
}
