package vec_test

import (
	"math/rand/v2"
	"testing"

	"github.com/trainerd/trainerd/internal/vec"
)

// TestBooleans combines booleans of all lengths, at places where words can begin and others.
func TestBooleans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		for shift := range 3 {
			draw := func() []bool {
				x := make([]bool, n+shift)
				for i := range x {
					x[i] = r.IntN(2) > 0
				}
				return x[shift:]
			}
			x, y, d := draw(), draw()[:n], make([]bool, n)
			vec.And(d, x, y)
			for i := range d {
				if d[i] != (x[i] && y[i]) {
					t.Fatalf("of %d, %t and %t is %t", n, x[i], y[i], d[i])
				}
			}
			vec.Or(d, x, y)
			for i := range d {
				if d[i] != (x[i] || y[i]) {
					t.Fatalf("of %d, %t or %t is %t", n, x[i], y[i], d[i])
				}
			}
		}
	}
}
