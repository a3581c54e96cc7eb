package gemm

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMany compares products that are computed where they lie with those whose factors are
// laid out.
func TestMany(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	for _, d := range [][3]int{{16, 1, 8}, {1, 16, 8}, {16, 8, 1}, {8, 1, 16}, {5, 3, 7}, {1, 1, 1}, {4, 4, 0}, {0, 3, 3}, {40, 50, 60}} {
		m, n, k := d[0], d[1], d[2]
		for form := range 8 {
			ta, tb, beta := form&1 > 0, form&2 > 0, float32(form>>2)
			a, b, want := draw(m*k), draw(k*n), draw(m*n)
			got := append([]float32(nil), want...)
			Float32s(ta, tb, m, n, k, a, b, beta, want)
			Many32s(ta, tb, m, n, k, a, b, beta, got)
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 1e-5 {
					t.Fatalf("%d by %d by %d, transposed %t %t, beta %v: element %d is %v, want %v", m, n, k, ta, tb, beta, i, got[i], want[i])
				}
			}
		}
	}
}

// BenchmarkMany is the products of a capsule network's votes.
func BenchmarkMany(b *testing.B) {
	x, y, d := make([]float32, 16*8), make([]float32, 8), make([]float32, 16)
	for _, f := range []struct {
		name string
		mul  Func[float32]
	}{{"small", Many32s}, {"laid_out", Float32s}} {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				f.mul(false, false, 16, 1, 8, x, y, 0, d)
				f.mul(false, true, 16, 8, 1, d, y, 0, x)
				f.mul(true, false, 8, 1, 16, x, d, 0, y)
			}
		})
	}
}
