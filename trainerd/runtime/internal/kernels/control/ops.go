// Package control has the kernels of the ops that decide what a run computes:
// Switch and Merge, the conditionals and loops of TensorFlow 2, and calls of
// functions. The loops of TensorFlow 1 are cut out of the graph by package exec.
package control

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

// Ops returns the tables of the family's ops.
func Ops() []exec.OpTable {
	return []exec.OpTable{
		functionalOps,
		controlFlowOps,
		criticalOps,
		loopOps,
		printOps,
	}
}
