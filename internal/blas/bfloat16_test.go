package blas

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/membound"
)

// shortMatrix returns bfloat16s, one place off the start of what was allocated.
func shortMatrix(r *rand.Rand, n int) []uint16 {
	x := make([]uint16, n+1)[1:]
	for i := range x {
		x[i] = float16.ToBfloat16(float32(r.NormFloat64()))
	}
	return x
}

func needsBfloat16s(t *testing.T) {
	if !HasBfloat16s() {
		t.Skip("this processor does not multiply bfloat16s")
	}
}

// TestBfloat16s compares products with sums of float64, rounded.
func TestBfloat16s(t *testing.T) {
	needsBfloat16s(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][3]int{{1, 1, 1}, {1, 16, 5}, {12, 32, 8}, {13, 33, 7}, {16, 16, 64}, {1, 40, 30}, {40, 1, 31}, {3, 3, 1401}, {146, 20, 646}, {25, 65, 641}, {300, 260, 130}, {4, 5, 0}} {
		for form := range 8 {
			ta, tb, add := form&1 > 0, form&2 > 0, form&4 > 0
			m, n, k := s[0], s[1], s[2]
			a, b, c := shortMatrix(r, m*k), shortMatrix(r, k*n), shortMatrix(r, m*n)
			want := make([]float64, m*n)
			for i := range want {
				if add {
					want[i] = float64(float16.FromBfloat16(c[i]))
				}
				for l := range k {
					x, y := i/n*k+l, l*n+i%n
					if ta {
						x = l*m + i/n
					}
					if tb {
						y = i%n*k + l
					}
					want[i] += float64(float16.FromBfloat16(a[x])) * float64(float16.FromBfloat16(b[y]))
				}
			}
			Bfloat16s(ta, tb, m, n, k, a, b, add, c)
			for i, v := range c {
				got := float64(float16.FromBfloat16(v))
				if bound := math.Abs(want[i])/256 + 1e-6*math.Sqrt(float64(k)); math.Abs(got-want[i]) > bound {
					t.Fatalf("%v, transposed %t and %t, added %t: element %d is %v, want %v", s, ta, tb, add, i, got, want[i])
				}
			}
		}
	}
}

// TestBfloat16sOdd has numbers that are none in one row of a factor.
func TestBfloat16sOdd(t *testing.T) {
	needsBfloat16s(t)
	r := rand.New(rand.NewPCG(3, 4))
	m, n, k := 20, 35, 17
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		a, b, c := shortMatrix(r, m*k), shortMatrix(r, k*n), make([]uint16, m*n)
		a[3*k+16], b[16*n+7] = float16.ToBfloat16(bad), 0
		Bfloat16s(false, false, m, n, k, a, b, false, c)
		for i, v := range c {
			f := float16.FromBfloat16(v)
			switch finite := f-f == 0; {
			case (i/n != 3) != finite:
				t.Errorf("%v: element %d,%d is %v", bad, i/n, i%n, f)
			case i == 3*n+7 && f == f:
				t.Errorf("%v times zero is %v", bad, f)
			}
		}
	}
}

// TestBfloat16sOnProcessors has the bits of one processor on several.
func TestBfloat16sOnProcessors(t *testing.T) {
	needsBfloat16s(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := rand.New(rand.NewPCG(5, 6))
	m, n, k := 301, 290, 701
	a, b := shortMatrix(r, m*k), shortMatrix(r, k*n)
	want, got := make([]uint16, m*n), make([]uint16, m*n)
	for form := range 4 {
		runtime.GOMAXPROCS(1)
		Bfloat16s(form&1 > 0, form&2 > 0, m, n, k, a, b, false, want)
		for _, processors := range []int{2, 3, 7} {
			runtime.GOMAXPROCS(processors)
			Bfloat16s(form&1 > 0, form&2 > 0, m, n, k, a, b, false, got)
			if !slices.Equal(got, want) {
				t.Errorf("form %d: %d processors have other bits than one", form, processors)
			}
		}
	}
}

func TestPairRows(t *testing.T) {
	needsBfloat16s(t)
	r := rand.New(rand.NewPCG(7, 8))
	for n := range 70 {
		x, y, d := make([]uint16, n), make([]uint16, n), make([]float32, n)
		for i := range n {
			x[i], y[i] = uint16(r.Uint32()), uint16(r.Uint32())
		}
		pairRows(d, x, y)
		for i := range d {
			if got, want := math.Float32bits(d[i]), uint32(x[i])|uint32(y[i])<<16; got != want {
				t.Fatalf("of %d elements, %d is %#x, want %#x", n, i, got, want)
			}
		}
	}
}

func TestBfloat16sAllocs(t *testing.T) {
	needsBfloat16s(t)
	membound.Exact(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	a, b, c := make([]uint16, 401*301), make([]uint16, 301*400), make([]uint16, 401*400)
	if n := testing.AllocsPerRun(20, func() { Bfloat16s(false, false, 401, 400, 301, a, b, false, c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBfloat16s(b *testing.B) {
	if !HasBfloat16s() {
		b.Skip("this processor does not multiply bfloat16s")
	}
	x, y, d := make([]uint16, 512*512), make([]uint16, 512*512), make([]uint16, 512*512)
	for b.Loop() {
		Bfloat16s(false, false, 512, 512, 512, x, y, false, d)
	}
	b.ReportMetric(2*512*512*512*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
