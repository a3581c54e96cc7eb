package linalg

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

// withHalves builds an op also for the types of 16 bits: out of its kernel for float32, but
// for bfloat16 where the processor multiplies them.
func withHalves(attr string, build func(*exec.OpConstruction) (exec.Kernel, error)) func(*exec.OpConstruction) (exec.Kernel, error) {
	widened := exec.Widened(attr, build)
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		if b.DType(attr) == exec.Bfloat16 && gemm.HasBfloat16s() {
			return build(b)
		}
		return widened(b)
	}
}
