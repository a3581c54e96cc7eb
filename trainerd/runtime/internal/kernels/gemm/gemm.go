// Package gemm multiplies matrices for the kernels of several families.
package gemm

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	fastblas "github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Func computes c = op(a)*op(b) + beta*c for row-major matrices, op being
// transposition when ta or tb says so; op(a) is m by k, op(b) k by n. beta is
// 0 or 1; with 0, c need not hold numbers.
type Func[T exec.Arithmetic] func(ta, tb bool, m, n, k int, a, b []T, beta T, c []T)

func transpose(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

// strides returns the leading dimensions of a and b as they are stored.
func strides(ta, tb bool, m, n, k int) (lda, ldb int) {
	lda, ldb = k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	return lda, ldb
}

// gonum's own products skip zeros in their factors, so that zero times infinity
// is zero where it should be NaN; they also take ten times as long. This is done
// before main, which may register another implementation.
func init() {
	blas32.Use(fastblas.Implementation{})
	blas64.Use(fastblas.Implementation{})
}

// Float32s multiplies with whatever float32 BLAS the program has registered.
func Float32s(ta, tb bool, m, n, k int, a, b []float32, beta float32, c []float32) {
	if m == 0 || n == 0 || k == 0 {
		if beta == 0 {
			clear(c)
		}
		return
	}
	lda, ldb := strides(ta, tb, m, n, k)
	blas32.Implementation().Sgemm(transpose(ta), transpose(tb), m, n, k, 1, a, lda, b, ldb, beta, c, n)
}

// Float64s is Float32s for float64.
func Float64s(ta, tb bool, m, n, k int, a, b []float64, beta float64, c []float64) {
	if m == 0 || n == 0 || k == 0 {
		if beta == 0 {
			clear(c)
		}
		return
	}
	lda, ldb := strides(ta, tb, m, n, k)
	blas64.Implementation().Dgemm(transpose(ta), transpose(tb), m, n, k, 1, a, lda, b, ldb, beta, c, n)
}

// Float32sAdd reports whether a product with the inner dimension k that is added
// to a matrix by beta = 1 has the bits of one that is computed alone and added
// afterwards.
func Float32sAdd(k int) bool {
	_, ours := blas32.Implementation().(fastblas.Implementation)
	return ours && fastblas.AddsWhole[float32](k)
}

// Float64sAdd is Float32sAdd for float64.
func Float64sAdd(k int) bool {
	_, ours := blas64.Implementation().(fastblas.Implementation)
	return ours && fastblas.AddsWhole[float64](k)
}

// IntegersAdd is Float32sAdd for integers, whose sums are exact.
func IntegersAdd(int) bool { return true }

// SumFunc computes c = a*b + beta*c as a sum of products, where a is stored transposed: the
// inner dimension k is a whole number of segments, and the product of each is summed before
// it is added. beta is 0 or 1.
type SumFunc[T exec.Number] func(m, n, k, segment int, a, b []T, beta T, c []T)

// FloatsSum is for segments that Float32sAdd, or Float64sAdd, allows.
func FloatsSum[T float32 | float64](m, n, k, segment int, a, b []T, beta T, c []T) {
	lda, ldb := strides(true, false, m, n, k)
	fastblas.Segments(true, false, m, n, k, segment, a, lda, b, ldb, beta, c, n)
}

// IntegersSum is FloatsSum for integers.
func IntegersSum[T exec.Integer](m, n, k, _ int, a, b []T, beta T, c []T) {
	Integers(true, false, m, n, k, a, b, beta, c)
}

// Turn makes the rows of src, of cols elements each, columns of dst.
func Turn[T float32 | float64](dst, src []T, rows, cols int) {
	fastblas.Transpose(dst, rows, src, rows, cols)
}

// Integers is the textbook loop; integers are rarely multiplied as matrices.
func Integers[T exec.Integer](ta, tb bool, m, n, k int, a, b []T, beta T, c []T) {
	lda, ldb := strides(ta, tb, m, n, k)
	for i := range m {
		for j := range n {
			s := beta * c[i*n+j]
			for l := range k {
				x, y := i*lda+l, l*ldb+j
				if ta {
					x = l*lda + i
				}
				if tb {
					y = j*ldb + l
				}
				s += a[x] * b[y]
			}
			c[i*n+j] = s
		}
	}
}
