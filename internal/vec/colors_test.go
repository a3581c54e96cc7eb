package vec

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestColors compares colours by vectors with those one by one: ordinary ones, grey ones, and
// with parts that are equal, none, infinite or no numbers.
func TestColors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	part := func() float32 {
		switch r.IntN(12) {
		case 0:
			return float32(special[r.IntN(len(special))])
		case 1, 2:
			return float32(r.IntN(3)) / 2
		case 3:
			return 0x1p-127 * r.Float32() // less than a normal number
		}
		return r.Float32()
	}
	for n := range 400 {
		by := float32(r.NormFloat64())
		if n%5 == 0 {
			by = []float32{0, 1, -1, .5, 20, -0.1, float32(math.Inf(1)), float32(math.NaN())}[n/5%8]
		}
		for name, f := range map[string]struct {
			all func(r, g, b []float32, by float32)
			one func(by float32, p rgb) rgb
		}{
			"hue":        {TurnHue, func(by float32, p rgb) rgb { return turned(float32(by*6), p) }},
			"saturation": {Saturate, saturated},
		} {
			var p [3][]float32
			for k := range p {
				p[k] = make([]float32, 61)
				for i := range p[k] {
					p[k][i] = part()
				}
			}
			var want []rgb
			for i := range p[0] {
				want = append(want, f.one(by, rgb{p[0][i], p[1][i], p[2][i]}))
			}
			was := [3]float32{p[0][0], p[1][0], p[2][0]}
			f.all(p[0], p[1], p[2], by)
			for i, w := range want {
				for k := range p {
					if got := p[k][i]; math.Float32bits(got) != math.Float32bits(w[k]) && !(got != got && w[k] != w[k]) {
						t.Fatalf("%s by %v: part %d of colour %d is %v, want %v (the first was %v)", name, by, k, i, got, w[k], was)
					}
				}
			}
		}
	}
}
