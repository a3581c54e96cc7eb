package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// responseCase is a local response normalisation of so many pixels.
type responseCase struct {
	pixels, channels, radius int
	bias, alpha, beta        float32
}

// TestLocalResponse holds the normalisation and its gradient against the textbook's,
// and asks for the same bits of one processor and three.
func TestLocalResponse(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, v := range []responseCase{
		{1200, 64, 4, 1, .001 / 9, .75}, // shared by processors
		{37, 96, 5, 1, 1, .5},
		{700, 3, 2, 2, 1e-4, 1},
		{50, 7, 1 << 40, .5, .3, .6}, // a radius beyond the channels
		{1, 3000, 2, 1, .1, .75},     // more channels than a block has
		{9, 1, 3, 1, .1, 1.5},
		{9, 16, 0, 1, .1, .75},
		{0, 16, 2, 1, .1, .75},
	} {
		t.Run(fmt.Sprintf("%+v", v), func(t *testing.T) {
			n := v.pixels * v.channels
			x, g := random32(r, n), random32(r, n)
			want := v.textbook(x, g)
			var first []*ckptfmt.Tensor
			for _, processors := range []int{1, 3} {
				got := v.run(t, processors, x, g, want[0])
				for i, name := range []string{"LRN", "LRNGrad"} {
					near(t, name, kerneltest.Values[float32](t, got[i]), want[i])
					if first != nil && !slices.Equal(got[i].Data, first[i].Data) {
						t.Errorf("%s has other bits with %d processors", name, processors)
					}
				}
				first = got
			}
		})
	}
}

func (v *responseCase) run(t *testing.T, processors int, x, g []float32, y []float64) []*ckptfmt.Tensor {
	t.Helper()
	before := runtime.GOMAXPROCS(processors)
	defer runtime.GOMAXPROCS(before)
	outputs := make([]float32, len(y))
	for i := range y {
		outputs[i] = float32(y[i])
	}
	b, shape := kerneltest.New(t), []int64{1, int64(v.pixels), 1, int64(v.channels)}
	attrs := []any{"depth_radius", v.radius, "bias", v.bias, "alpha", v.alpha, "beta", v.beta}
	images := kerneltest.Tensor(b, shape, x...)
	norm := b.Node("LRN", []string{images}, attrs...)
	grad := b.Node("LRNGrad", []string{kerneltest.Tensor(b, shape, g...), images, kerneltest.Tensor(b, shape, outputs...)}, attrs...)
	return b.Run([]string{norm, grad})
}

// textbook returns the normalised pixels and the gradient, in float64.
func (v *responseCase) textbook(x, g []float32) [2][]float64 {
	y, d := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		c := i % v.channels
		from, to := i-min(c, v.radius), i+min(v.channels-1-c, v.radius)+1
		sum := 0.0
		for _, a := range x[from:to] {
			sum += float64(a) * float64(a)
		}
		norm := float64(v.bias) + float64(v.alpha)*sum
		power := math.Pow(norm, -float64(v.beta))
		y[i] = float64(x[i]) * power
		d[i] += float64(g[i]) * power
		for k := from; k < to; k++ {
			d[k] -= 2 * float64(v.alpha) * float64(v.beta) * float64(x[k]) * y[i] / norm * float64(g[i])
		}
	}
	return [2][]float64{y, d}
}
