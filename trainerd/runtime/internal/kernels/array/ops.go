// Package array has the kernels of the ops that make, move and pick the elements
// of tensors: constants, shapes, slices, concatenation, gathering, scattering.
package array

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		nthElementOps,
		broadcastOps,
		createOps,
		arrayOps,
		concatOps,
		gatherOps,
		layoutOps,
		stridedAssignOps,
		padOps.WithHalves("MirrorPadGrad"),
		blocksOps,
		reverseOps,
		dataFormatOps,
		uniqueOps,
		scatterOps,
		inplaceOps,
		segmentOps,
	}
}
