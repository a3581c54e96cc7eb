package vec

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// apart returns how many float32 numbers lie between two.
func apart(x, y float32) int64 {
	key := func(v float32) int64 {
		b := int64(math.Float32bits(v))
		if b >= 1<<31 {
			return 1<<31 - b
		}
		return b
	}
	return max(key(x)-key(y), key(y)-key(x))
}

func TestFunctions(t *testing.T) {
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 88.7, 88.8, 200, -87, -88, -95, -103, -104, -200, 1e-40, -1e-40, 1e-30, 3e38, 1.1754944e-38,
		math.MaxFloat32, 0.0004, -0.0003, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for i := range 20000 {
		x = append(x, float32(i-10000)*.0105, float32(i)*.00007, float32(math.Exp(float64(i-10000)*.0085)))
	}
	for _, f := range []struct {
		name  string
		run   func(d, x []float32)
		exact func(float64) float64
		ulps  int64
	}{
		{"exp", Exp[float32], math.Exp, 2}, {"log", Log[float32], math.Log, 2}, {"tanh", Tanh[float32], math.Tanh, 4},
		{"erf", Erf[float32], math.Erf, 6}, {"erfc", Erfc[float32], math.Erfc, 6}, {"sigmoid", Sigmoid[float32], logistic, 4},
		{"sin", Sin[float32], math.Sin, 2}, {"cos", Cos[float32], math.Cos, 2},
	} {
		d := make([]float32, len(x))
		f.run(d, x)
		for i, v := range x {
			want := float32(f.exact(float64(v)))
			near := math.Abs(float64(d[i])-float64(want)) < 1e-43 || apart(d[i], want) <= f.ulps
			if !same(d[i], want) && (d[i] != d[i] || want != want || !near) {
				t.Errorf("%s(%v) is %v, want %v", f.name, v, d[i], want)
			}
		}
	}
}

// TestBitsOfFunctions compares the results of assembly with those of AVX2, for
// every 4,099th number: those of all processors are the same.
func TestBitsOfFunctions(t *testing.T) {
	x := make([]float32, 0, 1<<20)
	for b := uint64(0); b < 1<<32; b += 4099 {
		if v := math.Float32frombits(uint32(b)); v == v {
			x = append(x, v)
		}
	}
	if d := make([]float32, 16); expWide(d, d) == 0 {
		t.Skip("no assembly here")
	}
	for _, f := range []struct {
		name string
		run  func(d, x []float32)
		sum  uint32
	}{
		{"exp", Exp[float32], 0x5a9af3da}, {"log", Log[float32], 0x4ef6674b}, {"tanh", Tanh[float32], 0x975cf792}, {"erf", Erf[float32], 0xcf866344}, {"erfc", Erfc[float32], 0x33cfbb5d}, {"sigmoid", Sigmoid[float32], 0x7830de6c},
		{"sin", Sin[float32], 0x10b8a1a}, {"cos", Cos[float32], 0xff1cc71},
	} {
		d, sum := make([]float32, len(x)), crc32.NewIEEE()
		f.run(d, x)
		for _, v := range d {
			if v != v {
				v = 77 // of NaN there are many
			}
			sum.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
		if sum.Sum32() != f.sum {
			t.Errorf("%s: the sum of %d results is %#x, want %#x", f.name, len(x), sum.Sum32(), f.sum)
		}
	}
}

func smallest(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(1))
	}
	return slices.Min(x)
}

// TestFolds compares the folds with those of float64, which have no assembly:
// sums have to agree to the last bit.
func TestFolds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		x, wide := make([]float32, n), make([]float64, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
			wide[i] = float64(x[i])
		}
		if got, want := Sum(x), Sum(wide); got != want {
			t.Errorf("the sum of %d is %v, want %v", n, got, want)
		}
		if got, want := SumSquares(x), SumSquares(wide); got != want {
			t.Errorf("the sum of %d squares is %v, want %v", n, got, want)
		}
		if got, want := Max(x), float32(Max(wide)); got != want {
			t.Errorf("the largest of %d is %v, want %v", n, got, want)
		}
		if got, want := Min(x), smallest(x); got != want {
			t.Errorf("the smallest of %d is %v, want %v", n, got, want)
		}
		if n == 0 {
			continue
		}
		x[r.IntN(n)] = float32(math.NaN())
		if got := Max(x); got == got {
			t.Errorf("the largest of %d, one of them no number, is %v", n, got)
		}
		if got := Min(x); got == got {
			t.Errorf("the smallest of %d, one of them no number, is %v", n, got)
		}
	}
}
