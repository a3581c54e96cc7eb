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
	m, n, k, segments := 1+r.IntN(40), 1+r.IntN(80), 1+r.IntN(20), 1+r.IntN(3)
	rowA, colA, nextA := segments*k+r.IntN(30), 1, k+r.IntN(5)
	if r.IntN(2) == 0 {
		rowA, colA, nextA = 1, m+r.IntN(3), k*(m+3)
	}
	random := func(n int) []T {
		s := make([]T, n)
		for i := range s {
			s[i] = T(r.NormFloat64())
		}
		return s
	}
	p := Factors[T]{M: m, N: n, K: k, RowA: rowA, ColA: colA, RowB: (n + DirectColumns - 1) / DirectColumns * DirectColumns, RowC: n + r.IntN(4),
		Add: r.IntN(2) == 1, Segments: segments, NextA: nextA}
	p.NextB = k*p.RowB + r.IntN(4)
	p.A, p.B = random((segments-1)*nextA+(m-1)*rowA+(k-1)*colA+1), random((segments-1)*p.NextB+k*p.RowB)
	before := random((m-1)*p.RowC + n)
	want := p.whole(before)
	var d Direct[T]
	p.C = append([]T(nil), before...)
	d.Multiply(p)
	compare(t, want, p.C, want.reference())
	p.C = append([]T(nil), before...)
	p.portable()
	compare(t, want, p.C, want.reference())
}

// whole returns the same product of factors without segments.
func (p *Factors[T]) whole(c []T) *problem[T] {
	q := &problem[T]{tA: blas.NoTrans, tB: blas.NoTrans, m: p.M, n: p.N, k: p.K * p.Segments, alpha: 1, c: c, ldc: p.RowC, ldb: p.N, lda: p.K * p.Segments}
	if p.Add {
		q.beta = 1
	}
	for i := range p.M {
		for l := range q.k {
			q.a = append(q.a, p.A[l/p.K*p.NextA+i*p.RowA+l%p.K*p.ColA])
		}
	}
	for l := range q.k {
		at := l/p.K*p.NextB + l%p.K*p.RowB
		q.b = append(q.b, p.B[at:at+p.N]...)
	}
	return q
}
