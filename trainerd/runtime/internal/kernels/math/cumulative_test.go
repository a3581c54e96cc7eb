package math_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestCumulativeRows compares running sums and products along the first axis, which are by
// vectors, with those of the transposed matrix along the last one.
func TestCumulativeRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][2]int{{1, 8}, {5, 8}, {7, 37}, {64, 12}, {3, 0}} {
		values := make([]float32, s[0]*s[1])
		for i := range values {
			values[i] = float32(r.NormFloat64())
		}
		if len(values) > 0 {
			values[0] = -values[0] * 0 // a zero with a sign
		}
		g := kerneltest.New(t)
		x := kerneltest.Tensor(g, []int64{int64(s[0]), int64(s[1])}, values...)
		perm := kerneltest.Vector(g, int32(1), int32(0))
		turned := g.Node("Transpose", []string{x, perm})
		first, last := kerneltest.Scalar(g, int32(0)), kerneltest.Scalar(g, int32(1))
		var fetch []string
		for _, op := range []string{"Cumsum", "Cumprod"} {
			for form := range 4 {
				exclusive, reverse := form&1 > 0, form&2 > 0
				along := g.Node(op, []string{turned, last}, "exclusive", exclusive, "reverse", reverse)
				fetch = append(fetch, g.Node(op, []string{x, first}, "exclusive", exclusive, "reverse", reverse), g.Node("Transpose", []string{along, perm}))
			}
		}
		out := g.Run(fetch)
		for i := 0; i < len(out); i += 2 {
			if !slices.Equal(out[i].Data, out[i+1].Data) {
				t.Errorf("%v: form %d has other bits by vectors", s, i/2)
			}
		}
	}
}
