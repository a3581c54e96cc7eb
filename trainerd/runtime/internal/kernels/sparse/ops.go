// Package sparse has the kernels of the ops on sparse and ragged tensors, and on
// sets.
package sparse

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		sparseOps,
		sparseCrossOps,
		sparseMathOps,
		sparseSliceOps,
		sparseReduceOps,
		tensorsMapOps,
		serializeOps,
		sparseSegmentOps,
		setsOps,
		setSizeOps,
		raggedOps,
		raggedVariantOps,
		editDistanceOps,
	}
}
