package math_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// nearZeroOps are ops with what they compute, in float64.
var nearZeroOps = map[string]func(float64) float64{
	"Log1p":    math.Log1p,
	"Expm1":    math.Expm1,
	"Softplus": func(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) },
	"Elu": func(x float64) float64 {
		if x < 0 {
			return math.Expm1(x)
		}
		return x
	},
	"Selu": func(x float64) float64 {
		if x < 0 {
			return 1.7580993408473768 * math.Expm1(x)
		}
		return 1.0507009873554805 * x
	},
}

// nearZeroArguments are numbers of all sizes, and those that need care.
func nearZeroArguments() []float32 {
	r := rand.New(rand.NewPCG(3, 4))
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32, 1e-45, -1e-45, 88, 89, -87, -104, 30, 30.01, 16777216,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for range 3000 {
		x = append(x, float32(r.NormFloat64()*math.Exp(r.Float64()*24-20)))
	}
	return x
}

// TestNearZero asks for results within a few units in the last place, near zero too.
func TestNearZero(t *testing.T) {
	const allowed = 1e-6
	x := nearZeroArguments()
	for op, f := range nearZeroOps {
		t.Run(op, func(t *testing.T) {
			b := kerneltest.New(t)
			got := kerneltest.Values[float32](t, b.Run([]string{b.Node(op, []string{kerneltest.Vector(b, x...)})})[0])
			for i, v := range got {
				want := f(float64(x[i]))
				same := float64(v) == float64(float32(want)) || math.IsNaN(want) && v != v
				if !same && !(math.Abs(float64(v)-want) <= allowed*math.Abs(want)+2e-45) {
					t.Errorf("%s(%g) is %g, want %g", op, x[i], v, want)
				}
			}
		})
	}
}
