package philox

import (
	"math"
	"testing"
)

// TestBlocks has the known answers that the generator's authors published.
func TestBlocks(t *testing.T) {
	const ones = math.MaxUint32
	cases := []struct {
		name    string
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{"zeros", [4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{"ones", [4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{"digits of pi", [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	}
	for _, c := range cases {
		g := Generator{Counter: c.counter, Key: c.key}
		if got := g.Next(); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// TestSkip compares jumps with steps, over the carries of the counter.
func TestSkip(t *testing.T) {
	for _, start := range [][4]uint32{{}, {math.MaxUint32 - 2}, {math.MaxUint32 - 1, math.MaxUint32}, {math.MaxUint32, math.MaxUint32, math.MaxUint32}} {
		a, b := Generator{Counter: start}, Generator{Counter: start}
		for range 5 {
			a.Next()
		}
		b.Skip(5)
		if a != b {
			t.Errorf("from %v: %v after five steps, %v after a jump", start, a.Counter, b.Counter)
		}
	}
}

func TestWords(t *testing.T) {
	a, b := New(7, 11), New(7, 11)
	words := NewWords(&a)
	for range 3 {
		for i, want := range b.Next() {
			if got := words.Next(); got != want {
				t.Fatalf("word %d is %#x, want %#x", i, got, want)
			}
		}
	}
}

// TestNear bounds the distance of the single-precision functions from the
// exact ones; their very bits are tested on what TensorFlow drew.
func TestNear(t *testing.T) {
	off := func(got float32, want float64) bool {
		return math.Abs(float64(got)-want) > 1e-7*math.Max(1, math.Abs(want))
	}
	for i := 1; i <= 4096; i++ {
		u := float32(i) / 4096
		if got := log32(u); off(got, math.Log(float64(u))) {
			t.Errorf("log(%v) = %v", u, got)
		}
		x := float32(2 * math.Pi * float64(u))
		if s, c := sincos32(x); off(s, math.Sin(float64(x))) || off(c, math.Cos(float64(x))) {
			t.Errorf("sin and cos of %v are %v and %v", x, s, c)
		}
	}
}

// TestUniformRuns holds runs of blocks against single ones, also where the lower
// half of the counter overflows.
func TestUniformRuns(t *testing.T) {
	for _, low := range []uint32{0, 5, math.MaxUint32 - 20} {
		for _, n := range []int{0, 1, 31, 32, 33, 127, 1000} {
			g := Generator{Counter: [4]uint32{low, math.MaxUint32, 7, 9}, Key: [2]uint32{0x12345678, 0x9abcdef0}}
			if n == 1000 {
				g.Counter[1] = 3
			}
			one, got := g, make([]float32, n)
			g.Uniform32(got)
			for i := 0; i < n; i += 4 {
				var want [4]float32
				one.Uniform32(want[:])
				for j := i; j < min(n, i+4); j++ {
					if got[j] != want[j-i] {
						t.Fatalf("from %d, number %d of %d is %v, want %v", low, j, n, got[j], want[j-i])
					}
				}
			}
			if g.Counter != one.Counter {
				t.Errorf("after %d numbers from %d the counter is %v, want %v", n, low, g.Counter, one.Counter)
			}
		}
	}
}
