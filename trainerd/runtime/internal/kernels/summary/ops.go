// Package summary has the kernels that encode summaries for TensorBoard.
package summary

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		summaryOps,
		audioOps,
		writerOps,
	}
}
