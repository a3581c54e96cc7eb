package math

import (
	"math"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// TestExtremesHaveTheBitsOfOneElement compares the forms of the loops, at all lengths
// around those of registers and of what a scalar is spread to.
func TestExtremesHaveTheBitsOfOneElement(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-45, -1e-45, math.MaxFloat32, inf, -inf, nan}
	for name, f := range map[string]struct {
		loops *elem.Loops[float32, float32]
		one   func(x, y float32) float32
	}{"larger": {largerLoops[float32](), elem.Larger[float32]}, "smaller": {smallerLoops[float32](), elem.Smaller[float32]}} {
		for _, n := range []int{0, 1, 7, 8, 21, 256, 300, 555} {
			for k, y := range values {
				x, ys, got := make([]float32, n), make([]float32, n), [3][]float32{make([]float32, n), make([]float32, n), make([]float32, n)}
				for i := range x {
					x[i], ys[i] = values[i%len(values)], y
				}
				f.loops.Vv(got[0], x, ys)
				f.loops.Vs(got[1], x, y)
				f.loops.Sv(got[2], y, x)
				for i := range x {
					for form, want := range []float32{f.one(x[i], y), f.one(x[i], y), f.one(y, x[i])} {
						v := got[form][i]
						if math.Float32bits(v) != math.Float32bits(want) && (v == v || want == want) {
							t.Fatalf("%s, form %d, of %v and value %d is %v, want %v", name, form, x[i], k, v, want)
						}
					}
				}
			}
		}
	}
}
