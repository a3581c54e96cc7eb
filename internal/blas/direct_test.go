package blas

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
)

// TestDirect holds products of operands in place, with strides of all kinds,
// against the textbook's.
func TestDirect(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 400 {
		direct[float32](t, r)
		direct[float64](t, r)
	}
}

func direct[T float32 | float64](t *testing.T, r *rand.Rand) {
	t.Helper()
	m, n, k := 1+r.IntN(40), 1+r.IntN(80), 1+r.IntN(20)
	trans, rs, cs := blas.NoTrans, k+r.IntN(3), 1
	p := &problem[T]{tA: trans, tB: blas.NoTrans, m: m, n: n, k: k, alpha: 1, beta: T(r.IntN(2)), lda: rs, ldc: n + r.IntN(4)}
	if r.IntN(2) == 0 {
		p.tA, p.lda = blas.Trans, m+r.IntN(3)
		rs, cs = 1, p.lda
	}
	p.ldb = (n + DirectColumns - 1) / DirectColumns * DirectColumns
	random := func(n int) []T {
		s := make([]T, n)
		for i := range s {
			s[i] = T(r.NormFloat64())
		}
		return s
	}
	p.a, p.b, p.c = random((m-1)*rs+(k-1)*cs+1), random(k*p.ldb), random((m-1)*p.ldc+n)
	got := append([]T(nil), p.c...)
	var d Direct[T]
	d.Multiply(m, n, k, p.a, rs, cs, p.b, p.ldb, got, p.ldc, p.beta == 1)
	compare(t, p, got, p.reference())
	portable := append([]T(nil), p.c...)
	multiplyPortable(m, n, k, p.a, rs, cs, p.b, p.ldb, portable, p.ldc, p.beta == 1)
	compare(t, p, portable, p.reference())
}
