package math

import (
	"math"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func TestExtremesHaveTheBitsOfOneElement(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-45, -1e-45, math.MaxFloat32, inf, -inf, nan}
	for _, x := range values {
		for _, y := range values {
			for name, v := range map[string][2]float32{"larger": {larger(x, y), elem.Larger(x, y)}, "smaller": {smaller(x, y), elem.Smaller(x, y)}} {
				if got, want := v[0], v[1]; math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
					t.Errorf("%s of %v and %v is %v, want %v", name, x, y, got, want)
				}
			}
		}
	}
}
