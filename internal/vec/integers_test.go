package vec_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/internal/vec"
)

// TestIntegers compares slices of all lengths with single conversions.
func TestIntegers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 140 {
		bytes, ints, d := make([]uint8, n), make([]int32, n), make([]float32, n)
		for i := range n {
			bytes[i], ints[i] = uint8(r.Uint32()), int32(r.Uint32())
		}
		copy(ints, []int32{math.MaxInt32, math.MinInt32, 1<<24 + 1, 1<<24 + 3, -1<<24 - 1})
		vec.FromBytes(d, bytes)
		for i, v := range bytes {
			if d[i] != float32(v) {
				t.Fatalf("of %d bytes, %d is %v, want %v", n, i, d[i], v)
			}
		}
		vec.FromInt32s(d, ints)
		for i, v := range ints {
			if d[i] != float32(v) {
				t.Fatalf("of %d integers, %d is %v, want %v", n, i, d[i], v)
			}
		}
	}
}
