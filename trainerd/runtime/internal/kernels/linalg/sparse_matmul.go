package linalg

import "github.com/trainerd/trainerd/trainerd/runtime/internal/exec"

var sparseMatmulOps = exec.OpTable{
	"SparseMatMul": {Build: buildMatMulOfZeros},
}

// buildMatMulOfZeros builds the product of matrices that are said to have many
// zeros; the result is the same.
func buildMatMulOfZeros(b *exec.OpConstruction) (exec.Kernel, error) {
	for _, name := range []string{"Ta", "Tb"} {
		if dt := b.DType(name); dt != exec.Float32 {
			b.Fail("no kernel for %s=%s", name, exec.TypeName(dt))
		}
	}
	return floats32(b.Bool("transpose_a"), b.Bool("transpose_b")).run, nil
}
