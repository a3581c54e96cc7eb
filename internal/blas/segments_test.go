package blas

import (
	"math/rand/v2"
	"testing"
)

// TestSegments compares a product in segments with one product after the other,
// each added to the sum of those before.
func TestSegments(t *testing.T) {
	for name, e := range enginesHere() {
		t.Run(name, func(t *testing.T) {
			for _, s := range [][4]int{{1, 1, 1, 1}, {13, 33, 5, 3}, {40, 80, 20, 20}, {30, 48, 320, 2}, {7, 17, 100, 7}, {250, 16, 1, 5}} {
				for _, beta := range []float64{0, 1} {
					testSegments(t, e.single, s[0], s[1], s[2], s[3], float32(beta))
					testSegments(t, e.double, s[0], s[1], s[2], s[3], beta)
				}
			}
		})
	}
}

func testSegments[T float32 | float64](t *testing.T, e *engine[T], m, n, segment, count int, beta T) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	k := segment * count
	a, lda := matrix[T](r, k, m, 1, false)
	b, ldb := matrix[T](r, k, n, 1, false)
	got, ldc := matrix[T](r, m, n, 1, false)
	want := append([]T(nil), got...)
	e.multiply(&product[T]{ta: true, m: m, n: n, k: k, alpha: 1, a: a, lda: lda, b: b, ldb: ldb, beta: beta, c: got, ldc: ldc, segment: segment})
	for i := range count {
		p := product[T]{ta: true, m: m, n: n, k: segment, alpha: 1, a: a[i*segment*lda:], lda: lda, b: b[i*segment*ldb:], ldb: ldb, beta: beta, c: want, ldc: ldc}
		if i > 0 {
			p.beta = 1
		}
		e.multiply(&p)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%d by %d by %d segments of %d: element %d,%d is %v, one by one %v", m, n, count, segment, i/ldc, i%ldc, got[i], want[i])
		}
	}
}
