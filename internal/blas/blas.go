// Package blas is gonum's BLAS with faster matrix products.
//
// A program registers it for all users of gonum:
//
//	blas32.Use(blas.Implementation{})
//	blas64.Use(blas.Implementation{})
//
// Sgemm and Dgemm are its own; the rest is gonum's. On amd64 without AVX2 and FMA, on processors
// other than amd64 and arm64, and with the build tag noasm, everything is gonum's.
//
// # How a product is computed
//
// The product is made of tiles of a few rows by two vector registers, four with
// NEON, which stay in registers while the inner dimension runs (6 by 16 float32
// with AVX2 and NEON, 12 by 32 with AVX-512). The factors are copied, a block at
// a time, into the order in which the tiles read them:
//
//	inner dimension   in blocks of kc: a panel of b, kc by 16, fits the first cache
//	rows of a         in blocks of mc: mc by kc fit the second cache
//	columns of b      in blocks of nc
//
//	panel of a        kc columns of 6 elements     a[0,0] a[1,0] .. a[5,0] a[0,1] ..
//	panel of b        kc rows of 16 elements       b[0,0] b[0,1] .. b[0,15] b[1,0] ..
//
// Copying also transposes, so a transposed factor costs the same. If a copy would cost more than it
// saves, tiles read the factors in place.
//
// Large products are split over the processors. Each element of the product is
// summed in the same order however the work is split, so the number of
// processors does not change a bit of the result. Blocks of the inner dimension
// are equally long in all kernels, and each kernel adds one fused product after
// the other, so AVX2, AVX-512 and NEON have the same bits too. Gonum's loops have
// others: they add in another order.
//
// The assembly is written by tools/asmgen.
package blas

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

//go:generate go -C ../../tools run ./asmgen ..

// Implementation implements gonum's blas.Float32, Float64 and, as gonum does,
// the complex interfaces. It has no state.
type Implementation struct{ gonum.Implementation }

var (
	_ blas.Float32 = Implementation{}
	_ blas.Float64 = Implementation{}
)

// AddsWhole reports whether Sgemm (Dgemm) with beta 1 and the inner dimension k
// sums each element of the product before it adds the element to C, so that C has
// the bits that adding a product computed with beta 0 gives.
func AddsWhole[T float32 | float64](k int) bool {
	e := engineOf[T]()
	return e != nil && 0 < k && k <= e.kc
}

// Segments computes C = op(A) * op(B) + beta * C with the bits of a sum of products: the
// inner dimension k is a whole number of segments, as long as [AddsWhole] allows, and the
// product of each is summed before it is added to that of the ones before.
func Segments[T float32 | float64](ta, tb bool, m, n, k, segment int, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	p := product[T]{ta: ta, tb: tb, m: m, n: n, k: k, alpha: 1, a: a, lda: lda, b: b, ldb: ldb, beta: beta, c: c, ldc: ldc, segment: segment}
	e := engineOf[T]()
	if !AddsWhole[T](segment) || k%segment != 0 || !p.fits() {
		panic(fmt.Sprintf("blas: products of %d by %d by %d in segments of %d", m, k, n, segment))
	}
	e.multiply(&p)
}

// Sgemm computes C = alpha * op(A) * op(B) + beta * C. Arguments that do not
// fit panic as gonum's do. With beta zero, C need not hold numbers.
func (i Implementation) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	p := product[float32]{ta: tA != blas.NoTrans, tb: tB != blas.NoTrans, m: m, n: n, k: k, alpha: alpha, a: a, lda: lda, b: b, ldb: ldb, beta: beta, c: c, ldc: ldc}
	if single == nil || !valid(tA, tB) || !p.fits() {
		i.Implementation.Sgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	single.multiply(&p)
}

// Dgemm is Sgemm for float64.
func (i Implementation) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	p := product[float64]{ta: tA != blas.NoTrans, tb: tB != blas.NoTrans, m: m, n: n, k: k, alpha: alpha, a: a, lda: lda, b: b, ldb: ldb, beta: beta, c: c, ldc: ldc}
	if double == nil || !valid(tA, tB) || !p.fits() {
		i.Implementation.Dgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	double.multiply(&p)
}

func valid(list ...blas.Transpose) bool {
	for _, t := range list {
		if t != blas.NoTrans && t != blas.Trans && t != blas.ConjTrans {
			return false
		}
	}
	return true
}

// product is one call of a gemm.
type product[T float32 | float64] struct {
	ta, tb  bool
	m, n, k int
	alpha   T
	a       []T
	lda     int
	b       []T
	ldb     int
	beta    T
	c       []T
	ldc     int
	segment int // of k, whose product is summed before it is added; 0: all of it
}

// fits reports whether the slices hold the matrices. Empty products are
// gonum's.
func (p *product[T]) fits() bool {
	if p.m <= 0 || p.n <= 0 || p.k <= 0 {
		return false
	}
	ar, ac, br, bc := p.m, p.k, p.k, p.n
	if p.ta {
		ar, ac = ac, ar
	}
	if p.tb {
		br, bc = bc, br
	}
	return holds(len(p.a), p.lda, ar, ac) && holds(len(p.b), p.ldb, br, bc) && holds(len(p.c), p.ldc, p.m, p.n)
}

func holds(size, ld, rows, cols int) bool {
	return ld >= cols && size >= cols && (size-cols)/ld >= rows-1
}
