package blas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

func BenchmarkSgemm(b *testing.B) {
	for _, n := range []int{64, 128, 256, 384, 512, 768, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchSgemm(b, n, n, n, blas.NoTrans, blas.NoTrans) })
	}
	for _, s := range [][3]int{{128, 256, 784}, {784, 256, 128}, {128, 10, 256}, {256, 1024, 1024}, {1024, 1024, 256}, {32, 10, 64}, {64, 10, 32}, {32, 128, 64}, {32, 1, 16}} {
		for _, tr := range []string{"NN", "TN", "NT"} {
			b.Run(fmt.Sprint(s, tr), func(b *testing.B) {
				benchSgemm(b, s[0], s[1], s[2], blas.Transpose(tr[0]), blas.Transpose(tr[1]))
			})
		}
	}
}

func benchSgemm(bb *testing.B, m, n, k int, ta, tb blas.Transpose) {
	a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
	for i := range a {
		a[i] = rand.Float32()
	}
	for i := range b {
		b[i] = rand.Float32()
	}
	lda, ldb := k, n
	if ta == blas.Trans {
		lda = m
	}
	if tb == blas.Trans {
		ldb = k
	}
	for bb.Loop() {
		Implementation{}.Sgemm(ta, tb, m, n, k, 1, a, lda, b, ldb, 0, c, n)
	}
	bb.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(bb.N)/bb.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func TestQuick(t *testing.T) {
	for i := range 2000 {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		m, n, k := 1+r.IntN(40), 1+r.IntN(70), 1+r.IntN(50)
		if i%50 == 0 {
			m, n, k = 1+r.IntN(400), 1+r.IntN(400), 1+r.IntN(800)
		}
		ta, tb := blas.NoTrans, blas.NoTrans
		lda, ldb, ldc := k, n, n
		if i&1 != 0 {
			ta, lda = blas.Trans, m
		}
		if i&2 != 0 {
			tb, ldb = blas.Trans, k
		}
		a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
		for _, s := range [][]float32{a, b, c} {
			for i := range s {
				s[i] = float32(r.NormFloat64())
			}
		}
		want := append([]float32(nil), c...)
		alpha, beta := float32(i%3), float32(i%5)
		Implementation{}.Sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		gonum.Implementation{}.Sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, want, ldc)
		for x := range c {
			if math.Abs(float64(c[x]-want[x])) > 1e-3 {
				t.Fatal(i, m, n, k, ta, tb, alpha, beta, x, c[x], want[x])
			}
		}
	}
}
