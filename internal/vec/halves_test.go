package vec_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/vec"
)

// TestHalves converts every half and bfloat16, and numbers on both sides of each border
// between two of them, and compares slices with single numbers.
func TestHalves(t *testing.T) {
	all := make([]uint16, 1<<16+3) // not a whole number of registers
	for i := range all {
		all[i] = uint16(i)
	}
	for name, f := range map[string]struct {
		from  func(d []float32, x []uint16)
		to    func(d []uint16, x []float32)
		round func(d, x []float32)
		one   func(uint16) float32
		back  func(float32) uint16
	}{
		"half":     {vec.FromHalves, vec.ToHalves, vec.RoundHalves, float16.FromHalf, float16.ToHalf},
		"bfloat16": {vec.FromBfloat16s, vec.ToBfloat16s, vec.RoundBfloat16s, float16.FromBfloat16, float16.ToBfloat16},
	} {
		wide := make([]float32, len(all))
		f.from(wide, all)
		for i, v := range wide {
			if want := f.one(all[i]); math.Float32bits(v) != math.Float32bits(want) {
				t.Fatalf("%s %#x is %v, want %v", name, all[i], v, want)
			}
		}
		numbers := nearBorders(wide)
		short, rounded := make([]uint16, len(numbers)), make([]float32, len(numbers))
		f.to(short, numbers)
		f.round(rounded, numbers)
		for i, v := range numbers {
			if want := f.back(v); short[i] != want || math.Float32bits(rounded[i]) != math.Float32bits(f.one(want)) {
				t.Fatalf("%s of %v (%#x) is %#x and rounds to %v, want %#x", name, v, math.Float32bits(v), short[i], rounded[i], want)
			}
		}
	}
}

// nearBorders returns the numbers of a list, those in the middle between neighbours, and
// those next to both, and others at random.
func nearBorders(list []float32) []float32 {
	var numbers []float32
	for i, v := range list[:len(list)-1] {
		bits, next := uint64(math.Float32bits(v)), uint64(math.Float32bits(list[i+1]))
		for _, b := range []uint64{bits, (bits + next) / 2} {
			for d := range uint64(3) {
				numbers = append(numbers, math.Float32frombits(uint32(b+d-1)))
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1 << 16 {
		numbers = append(numbers, math.Float32frombits(r.Uint32()))
	}
	return numbers
}
