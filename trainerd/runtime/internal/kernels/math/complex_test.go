package math_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestComplexAbs holds absolute values in single precision against those in double, with
// values that are very small, very large, infinite or no numbers, and enough for several
// processors.
func TestComplexAbs(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	odd := []float32{0, 1, -1, 1e-45, -1e-30, 3e38, -3e38, inf, -inf, nan}
	z := make([]complex64, 1<<17)
	for i := range z {
		z[i] = complex(float32(r.NormFloat64()), float32(r.NormFloat64()))
		if i < len(odd)*len(odd) {
			z[i] = complex(odd[i%len(odd)], odd[i/len(odd)])
		}
	}
	b := kerneltest.New(t)
	got := kerneltest.Values[float32](t, b.Run([]string{b.Node("ComplexAbs", []string{kerneltest.Vector(b, z...)})})[0])
	for i, v := range z {
		want := float32(cmplx.Abs(complex128(v)))
		if got[i] != want && !(got[i] != got[i] && want != want) && math.Nextafter32(got[i], want) != want {
			t.Fatalf("the absolute value of %v is %v, want %v", v, got[i], want)
		}
	}
}
