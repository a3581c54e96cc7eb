package linalg_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestSolveOfSmallDeterminant solves a system whose determinant, 1e-600, is zero to the
// machine.
func TestSolveOfSmallDeterminant(t *testing.T) {
	const n = 300
	m, right := make([]float64, n*n), make([]float64, n)
	for i := range n {
		m[i*(n+1)], right[i] = .01, float64(i)
	}
	b := kerneltest.New(t)
	matrix := kerneltest.Tensor(b, []int64{n, n}, m...)
	got := b.Run([]string{b.Node("MatrixSolve", []string{matrix, kerneltest.Tensor(b, []int64{n, 1}, right...)}), b.Node("MatrixInverse", []string{matrix})})
	x, inverse := kerneltest.Values[float64](t, got[0]), kerneltest.Values[float64](t, got[1])
	for i := range n {
		if math.Abs(x[i]-100*float64(i)) > 1e-9 || math.Abs(inverse[i*(n+1)]-100) > 1e-9 {
			t.Fatalf("element %d of the solution is %v, and of the inverse %v", i, x[i], inverse[i*(n+1)])
		}
	}
}

// TestDecompositionsOfBatches computes batches of matrices with one processor and with three:
// the factors multiply to the matrix, solutions solve it, and the bits are the same.
func TestDecompositionsOfBatches(t *testing.T) {
	const count, n = 40, 12
	r := rand.New(rand.NewPCG(7, 8))
	m := make([]float64, count*n*n)
	for k := range count {
		symmetric(r, m[k*n*n:(k+1)*n*n], n)
	}
	var first [][]byte
	for _, processors := range []int{1, 3} {
		before := runtime.GOMAXPROCS(processors)
		b := kerneltest.New(t)
		x := kerneltest.Tensor(b, []int64{count, n, n}, m...)
		eigen := b.Node("SelfAdjointEigV2", []string{x}, "compute_v", true)
		alone := b.Node("SelfAdjointEigV2", []string{x}, "compute_v", false)
		got := b.Run([]string{b.Node("Cholesky", []string{x}), b.Node("MatrixInverse", []string{x}), eigen, eigen + ":1", alone})
		runtime.GOMAXPROCS(before)
		l, inverse := kerneltest.Values[float64](t, got[0]), kerneltest.Values[float64](t, got[1])
		values, vectors := kerneltest.Values[float64](t, got[2]), kerneltest.Values[float64](t, got[3])
		for k := range count {
			from, to := k*n*n, (k+1)*n*n
			wantProduct(t, "the factor", l[from:to], turned(l[from:to], n), m[from:to], n)
			wantProduct(t, "the inverse", inverse[from:to], m[from:to], unit(n), n)
			scaled := slices.Clone(vectors[from:to])
			for i := range scaled {
				scaled[i] *= values[k*n+i%n]
			}
			wantProduct(t, "the eigenvectors", scaled, turned(vectors[from:to], n), m[from:to], n)
		}
		if !slices.Equal(got[4].Data, got[2].Data) {
			t.Error("eigenvalues have other bits without the vectors")
		}
		for i := range first {
			if !slices.Equal(got[i].Data, first[i]) {
				t.Errorf("result %d has other bits with %d processors", i, processors)
			}
		}
		for _, g := range got {
			first = append(first, g.Data)
		}
	}
}

// symmetric makes m a positive definite matrix.
func symmetric(r *rand.Rand, m []float64, n int) {
	for i := range n {
		for j := range i {
			v := r.Float64() - .5
			m[i*n+j], m[j*n+i] = v, v
		}
		m[i*(n+1)] = float64(n)
	}
}

func unit(n int) []float64 {
	m := make([]float64, n*n)
	for i := range n {
		m[i*(n+1)] = 1
	}
	return m
}

func turned(m []float64, n int) []float64 {
	d := make([]float64, n*n)
	for i := range d {
		d[i] = m[i%n*n+i/n]
	}
	return d
}

func wantProduct(t *testing.T, what string, x, y, want []float64, n int) {
	t.Helper()
	for i := range want {
		sum := 0.0
		for k := range n {
			sum += x[i/n*n+k] * y[k*n+i%n]
		}
		if math.Abs(sum-want[i]) > 1e-9 {
			t.Fatalf("%s: element %d of the product is %v, want %v", what, i, sum, want[i])
		}
	}
}
