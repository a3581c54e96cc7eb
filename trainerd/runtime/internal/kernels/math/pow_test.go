package math

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPow holds powers in single precision against those in double, with bases and exponents of
// all sizes.
func TestPow(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, 0.5, 3, 1e-45, 3e38, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for i := range 200000 {
		x, y := float32(math.Exp(r.NormFloat64()*20)), float32(r.NormFloat64()*math.Exp(r.NormFloat64()*2))
		if i < len(special)*len(special) {
			x, y = special[i%len(special)], special[i/len(special)]
		}
		got, want := pow(x, y), float32(math.Pow(float64(x), float64(y)))
		if got != want && !(got != got && want != want) && math.Nextafter32(got, want) != want {
			t.Fatalf("%v to the power of %v is %v, want %v", x, y, got, want)
		}
	}
}

func BenchmarkPow(b *testing.B) {
	d, x := make([]float32, 1024), make([]float32, 1024)
	for i := range x {
		x[i] = float32(i+1) / 1024
	}
	for b.Loop() {
		eachPower(d, x, func(v float32) float32 { return pow(v, 1.1) })
	}
}
