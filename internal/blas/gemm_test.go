package blas

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// problem is one call of a gemm with room for more than the matrices: rows are
// longer than they need be, and what lies between them must not change.
type problem[T float32 | float64] struct {
	tA, tB        blas.Transpose
	m, n, k       int
	alpha, beta   T
	a, b, c       []T
	lda, ldb, ldc int
}

type gemmFunc[T float32 | float64] func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)

func (p *problem[T]) run(f gemmFunc[T]) []T {
	c := append([]T(nil), p.c...)
	f(p.tA, p.tB, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, c, p.ldc)
	return c
}

func newProblem[T float32 | float64](r *rand.Rand, tA, tB blas.Transpose, m, n, k, gap int, alpha, beta T) *problem[T] {
	p := &problem[T]{tA: tA, tB: tB, m: m, n: n, k: k, alpha: alpha, beta: beta}
	p.a, p.lda = matrix[T](r, m, k, gap, tA != blas.NoTrans)
	p.b, p.ldb = matrix[T](r, k, n, gap, tB != blas.NoTrans)
	p.c, p.ldc = matrix[T](r, m, n, gap, false)
	return p
}

func matrix[T float32 | float64](r *rand.Rand, rows, cols, gap int, transposed bool) ([]T, int) {
	if transposed {
		rows, cols = cols, rows
	}
	s := make([]T, (rows-1)*(cols+gap)+cols) // the last row has no gap after it
	for i := range s {
		s[i] = T(r.NormFloat64())
	}
	return s, cols + gap
}

// reference is the textbook's product in float64.
func (p *problem[T]) reference() []T {
	want := append([]T(nil), p.c...)
	for i := range p.m {
		for j := range p.n {
			sum := 0.0
			for l := range p.k {
				x, y := i*p.lda+l, l*p.ldb+j
				if p.tA != blas.NoTrans {
					x = l*p.lda + i
				}
				if p.tB != blas.NoTrans {
					y = j*p.ldb + l
				}
				sum += float64(p.a[x]) * float64(p.b[y])
			}
			sum *= float64(p.alpha)
			if p.beta != 0 {
				sum += float64(p.beta) * float64(p.c[i*p.ldc+j])
			}
			want[i*p.ldc+j] = T(sum)
		}
	}
	return want
}

// compare allows the rounding of k steps.
func compare[T float32 | float64](t *testing.T, p *problem[T], got, want []T) {
	t.Helper()
	epsilon := 1.2e-7
	if _, ok := any(p.alpha).(float64); ok {
		epsilon = 2.3e-16
	}
	bound := 8 * epsilon * math.Sqrt(float64(p.k)+8) * 8 * (1 + math.Abs(float64(p.alpha)) + math.Abs(float64(p.beta)))
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if g == w || g != g && w != w {
			continue
		}
		if !(math.Abs(g-w) <= bound*(1+math.Abs(w))) {
			t.Fatalf("%c%c m=%d n=%d k=%d alpha=%v beta=%v ld=%d,%d,%d: element %d,%d is %v, want %v",
				p.tA, p.tB, p.m, p.n, p.k, p.alpha, p.beta, p.lda, p.ldb, p.ldc, i/p.ldc, i%p.ldc, g, w)
		}
	}
}

// transposes are all forms of a factor.
var transposes = []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans}

func testShapes[T float32 | float64](t *testing.T, f gemmFunc[T]) {
	r := rand.New(rand.NewPCG(1, 2))
	// Around the sizes of tiles and blocks, and one by one.
	shapes := [][3]int{{1, 1, 1}, {1, 16, 5}, {6, 16, 4}, {7, 17, 3}, {5, 15, 9}, {12, 32, 8}, {13, 33, 7}, {1, 40, 30}, {40, 1, 30}, {3, 3, 700},
		{100, 7, 2}, {2, 100, 1}, {146, 20, 323}, {25, 65, 321}, {110, 110, 110}, {26, 401, 319}}
	for _, s := range shapes {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			for _, tA := range transposes {
				for _, tB := range transposes {
					for i, scale := range [][2]T{{1, 0}, {1, 1}, {-.5, 2}, {0, 3}, {0, 0}} {
						for _, gap := range []int{0, 3} {
							if large := s[0]*s[1]*s[2] > 1<<17; large && (i > 2 || gap > 0 || tA == blas.ConjTrans || tB == blas.ConjTrans) {
								continue
							}
							p := newProblem(r, tA, tB, s[0], s[1], s[2], gap, scale[0], scale[1])
							compare(t, p, p.run(f), p.reference())
						}
					}
				}
			}
		})
	}
}

func TestSgemm(t *testing.T) { testShapes(t, Implementation{}.Sgemm) }
func TestDgemm(t *testing.T) { testShapes(t, Implementation{}.Dgemm) }

// All kernels that this processor can run are held against gonum.
func TestEveryEngine(t *testing.T) {
	for name, e := range enginesHere() {
		t.Run(name, func(t *testing.T) {
			testShapes(t, func(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
				e.single.multiply(&product[float32]{tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 0})
			})
			testShapes(t, func(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
				e.double.multiply(&product[float64]{tA != blas.NoTrans, tB != blas.NoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 0})
			})
		})
	}
}

// Products have the same bits with AVX2, AVX-512 and NEON.
func TestBitsOfEngines(t *testing.T) {
	for name, e := range enginesHere() {
		sum := crc32.NewIEEE()
		for _, s := range [][3]int{{1, 1, 1}, {7, 17, 3}, {13, 8, 20}, {40, 33, 700}, {20, 100, 321}} {
			sumProducts(sum, e.single, s)
			sumProducts(sum, e.double, s)
		}
		if want := uint32(0x1f813593); sum.Sum32() != want {
			t.Errorf("%s: the sum of the products is %#x, want %#x", name, sum.Sum32(), want)
		}
	}
}

// sumProducts adds products of m by n elements, k long, to a sum.
func sumProducts[T float32 | float64](sum io.Writer, e *engine[T], s [3]int) {
	m, n, k := s[0], s[1], s[2]
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = T(r.Float64() - .5)
		}
		return x
	}
	for _, form := range []struct{ ta, tb bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		a, b, c := random(m*k), random(k*n), random(m*n)
		lda, ldb := k, n
		if form.ta {
			lda = m
		}
		if form.tb {
			ldb = k
		}
		e.multiply(&product[T]{form.ta, form.tb, m, n, k, .75, a, lda, b, ldb, 1, c, n, 0})
		binary.Write(sum, binary.LittleEndian, c)
	}
}

// A product that is added to a matrix has the bits of one that is added afterwards,
// for the inner dimensions for which that is said.
func TestAddsWhole(t *testing.T) {
	for name, e := range enginesHere() {
		t.Run(name, func(t *testing.T) {
			for _, s := range [][3]int{{1, 1, 1}, {7, 17, 3}, {13, 8, 20}, {1, 40, 64}, {40, 33, e.single.kc}, {90, 130, 119}} {
				addsWhole(t, e.single, s)
				addsWhole(t, e.double, s)
			}
		})
	}
	for _, k := range []int{-1, 0, 1 << 20} {
		if AddsWhole[float32](k) || AddsWhole[float64](k) {
			t.Errorf("products of the inner dimension %d are said to be added whole", k)
		}
	}
	if single != nil && !(AddsWhole[float32](64) && AddsWhole[float64](64)) {
		t.Error("products of the inner dimension 64 are not said to be added whole")
	}
}

func addsWhole[T float32 | float64](t *testing.T, e *engine[T], s [3]int) {
	t.Helper()
	m, n, k := s[0], s[1], s[2]
	r := rand.New(rand.NewPCG(7, 8))
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			a, lda := matrix[T](r, m, k, 0, ta)
			b, ldb := matrix[T](r, k, n, 0, tb)
			sum, ldc := matrix[T](r, m, n, 0, false)
			want, alone := make([]T, len(sum)), make([]T, len(sum))
			e.multiply(&product[T]{ta, tb, m, n, k, 1, a, lda, b, ldb, 0, alone, ldc, 0})
			for i := range want {
				want[i] = sum[i] + alone[i]
			}
			e.multiply(&product[T]{ta, tb, m, n, k, 1, a, lda, b, ldb, 1, sum, ldc, 0})
			for i := range want {
				if sum[i] != want[i] {
					t.Fatalf("%v, transposed %t %t: element %d is %v, alone and added %v", s, ta, tb, i, sum[i], want[i])
				}
			}
		}
	}
}

// NaN in a factor is NaN in the product, and only where it
// belongs; with beta zero, what was in C does not matter.
func TestNotNumbers(t *testing.T) {
	if single == nil {
		t.Skip("gonum's products skip zeros, whatever they are multiplied with")
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	r := rand.New(rand.NewPCG(3, 4))
	for _, bad := range []float32{nan, inf, -inf} {
		p := newProblem[float32](r, blas.NoTrans, blas.Trans, 20, 35, 17, 2, 1, 0)
		p.a[3*p.lda+5], p.b[7*p.ldb+5] = bad, 0 // times zero is not a number either
		for i := range p.c {
			p.c[i] = nan
		}
		for i, v := range p.run(Implementation{}.Sgemm) {
			row, col := i/p.ldc, i%p.ldc
			if col >= p.n {
				continue
			}
			switch finite := v-v == 0; {
			case row != 3 && !finite:
				t.Errorf("%v: element %d,%d is %v", bad, row, col, v)
			case row == 3 && finite:
				t.Errorf("%v: element %d,%d is %v, a number", bad, row, col, v)
			case row == 3 && col == 7 && v == v:
				t.Errorf("%v times zero is %v", bad, v)
			}
		}
	}
}

// The bits of a product do not depend on how many processors share the work.
func TestProcessorsDoNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range [][3]int{{130, 260, 340}, {300, 90, 350}} {
		p := newProblem[float32](r, blas.NoTrans, blas.NoTrans, s[0], s[1], s[2], 1, 1, 1)
		runtime.GOMAXPROCS(1)
		want := p.run(Implementation{}.Sgemm)
		for _, n := range []int{2, 3, 7} {
			runtime.GOMAXPROCS(n)
			got := p.run(Implementation{}.Sgemm)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%v on %d processors: element %d is %v, on one %v", s, n, i, got[i], want[i])
				}
			}
		}
	}
}

// Arguments that do not fit are refused as gonum refuses them.
func TestPanics(t *testing.T) {
	short, fits := make([]float32, 5), make([]float32, 6)
	for name, call := range map[string]func(f gemmFunc[float32]){
		"transpose":  func(f gemmFunc[float32]) { f('X', blas.NoTrans, 2, 2, 3, 1, fits, 3, fits, 2, 0, fits, 2) },
		"negative":   func(f gemmFunc[float32]) { f(blas.NoTrans, blas.NoTrans, -1, 2, 3, 1, fits, 3, fits, 2, 0, fits, 2) },
		"stride":     func(f gemmFunc[float32]) { f(blas.NoTrans, blas.NoTrans, 2, 2, 3, 1, fits, 2, fits, 2, 0, fits, 2) },
		"short A":    func(f gemmFunc[float32]) { f(blas.NoTrans, blas.NoTrans, 2, 2, 3, 1, short, 3, fits, 2, 0, fits, 2) },
		"short B":    func(f gemmFunc[float32]) { f(blas.NoTrans, blas.NoTrans, 2, 2, 3, 1, fits, 3, short, 2, 0, fits, 2) },
		"short C":    func(f gemmFunc[float32]) { f(blas.NoTrans, blas.NoTrans, 2, 2, 3, 1, fits, 3, fits, 2, 0, fits[:3], 2) },
		"nothing":    func(f gemmFunc[float32]) { f(blas.NoTrans, blas.NoTrans, 0, 2, 3, 1, nil, 3, fits, 2, 0, nil, 2) },
		"nothing in": func(f gemmFunc[float32]) { f(blas.NoTrans, blas.NoTrans, 2, 2, 0, 1, nil, 1, nil, 2, 0, fits, 2) },
	} {
		got := recovered(func() { call(Implementation{}.Sgemm) })
		if want := recovered(func() { call(gonum.Implementation{}.Sgemm) }); got != want {
			t.Errorf("%s: panic %v, gonum's is %v", name, got, want)
		}
	}
}

func recovered(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

func TestAllocs(t *testing.T) {
	if single == nil {
		t.Skip("gonum's products allocate")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, s := range [][3]int{{4, 5, 6}, {32, 10, 64}, {128, 128, 128}} {
		p := newProblem[float32](rand.New(rand.NewPCG(1, 1)), blas.Trans, blas.NoTrans, s[0], s[1], s[2], 0, 2, .5)
		n := testing.AllocsPerRun(20, func() {
			Implementation{}.Sgemm(p.tA, p.tB, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc)
		})
		if n != 0 {
			t.Errorf("%v: %v allocations", s, n)
		}
	}
}

func FuzzGemm(f *testing.F) {
	f.Add(uint64(1), byte(0), uint16(6), uint16(16), uint16(4), byte(0))
	f.Add(uint64(2), byte(5), uint16(7), uint16(33), uint16(321), byte(1))
	f.Add(uint64(3), byte(3), uint16(145), uint16(65), uint16(9), byte(7))
	f.Fuzz(func(t *testing.T, seed uint64, form byte, m, n, k uint16, gap byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		tA, tB := transposes[form%3], transposes[form/3%3]
		scales := []float32{0, 1, -1, .25}
		alpha, beta := scales[form/9%4], scales[form/36%4]
		p := newProblem(r, tA, tB, int(m%200)+1, int(n%200)+1, int(k%400)+1, int(gap%9), alpha, beta)
		compare(t, p, p.run(Implementation{}.Sgemm), p.run(gonum.Implementation{}.Sgemm))
		q := newProblem(r, tA, tB, int(m%60)+1, int(n%60)+1, int(k%90)+1, int(gap%9), float64(alpha), float64(beta))
		compare(t, q, q.run(Implementation{}.Dgemm), q.run(gonum.Implementation{}.Dgemm))
	})
}

func BenchmarkSgemm(b *testing.B) {
	for _, n := range []int{16, 64, 256, 512, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchSgemm(b, n, n, n, blas.NoTrans, blas.NoTrans) })
	}
	for _, s := range [][3]int{{128, 256, 784}, {784, 256, 128}, {128, 10, 256}, {32, 10, 64}, {32, 1, 16}} {
		for _, t := range []string{"NN", "TN", "NT"} {
			b.Run(fmt.Sprint(s, t), func(b *testing.B) {
				benchSgemm(b, s[0], s[1], s[2], blas.Transpose(t[0]), blas.Transpose(t[1]))
			})
		}
	}
}

func benchSgemm(b *testing.B, m, n, k int, tA, tB blas.Transpose) {
	p := newProblem[float32](rand.New(rand.NewPCG(1, 1)), tA, tB, m, n, k, 0, 1, 0)
	b.ReportAllocs()
	for b.Loop() {
		Implementation{}.Sgemm(p.tA, p.tB, m, n, k, 1, p.a, p.lda, p.b, p.ldb, 0, p.c, p.ldc)
	}
	b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
