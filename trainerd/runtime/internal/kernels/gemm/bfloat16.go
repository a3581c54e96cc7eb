package gemm

import fastblas "github.com/trainerd/trainerd/internal/blas"

// HasBfloat16s reports whether the processor multiplies bfloat16s: [Bfloat16s] does then.
// Elsewhere they are widened and multiplied as float32s.
func HasBfloat16s() bool { return fastblas.HasBfloat16s() }

// Bfloat16s is Float32s for bfloat16s, whose sums are float32s. beta is the number 0 or 1
// in bits: it matters only whether it is 0.
func Bfloat16s(ta, tb bool, m, n, k int, a, b []uint16, beta uint16, c []uint16) {
	fastblas.Bfloat16s(ta, tb, m, n, k, a, b, beta != 0, c)
}
