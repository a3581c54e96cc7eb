package nn_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestFakeQuantVectors compares what vectors round with what is rounded one by one, by bounds
// for each channel.
func TestFakeQuantVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, 3*67)
	for i := range values {
		values[i] = float32(r.NormFloat64())
	}
	copy(values, []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1e-40, 3e38})
	for _, bounds := range [][2]float32{{-1, 1}, {0, 1.5}, {-2, 0}, {0.1, 0.7}, {0, 0}, {-0.3, 2.1}} {
		g := kerneltest.New(t)
		x := kerneltest.Tensor(g, []int64{67, 3}, values...)
		each := func(v float32) string { return kerneltest.Vector(g, v, v, v) }
		low, high := kerneltest.Scalar(g, bounds[0]), kerneltest.Scalar(g, bounds[1])
		out := g.Run([]string{
			g.Node("FakeQuantWithMinMaxVars", []string{x, low, high}),
			g.Node("FakeQuantWithMinMaxVarsPerChannel", []string{x, each(bounds[0]), each(bounds[1])}),
		})
		if !slices.Equal(out[0].Data, out[1].Data) {
			t.Errorf("between %v: vectors have other bits", bounds)
		}
	}
}

// TestFakeQuantGradientVectors does the same for gradients: those of the bounds for each channel
// add up to those of all.
func TestFakeQuantGradientVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values, grads := make([]float32, 3*167), make([]float32, 3*167)
	for i := range values {
		values[i], grads[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
	}
	copy(values, []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0})
	g := kerneltest.New(t)
	x, grad := kerneltest.Tensor(g, []int64{167, 3}, values...), kerneltest.Tensor(g, []int64{167, 3}, grads...)
	all := g.Node("FakeQuantWithMinMaxVarsGradient", []string{grad, x, kerneltest.Scalar(g, float32(-1)), kerneltest.Scalar(g, float32(.7))})
	each := g.Node("FakeQuantWithMinMaxVarsPerChannelGradient", []string{grad, x, kerneltest.Vector[float32](g, -1, -1, -1), kerneltest.Vector[float32](g, .7, .7, .7)})
	out := g.Run([]string{all, each, all + ":1", each + ":1", all + ":2", each + ":2"})
	if !slices.Equal(out[0].Data, out[1].Data) {
		t.Error("vectors have other gradients of the numbers")
	}
	for i := 2; i < 6; i += 2 {
		sum := 0.0
		for _, v := range kerneltest.Values[float32](t, out[i+1]) {
			sum += float64(v)
		}
		if got := float64(kerneltest.Values[float32](t, out[i])[0]); math.Abs(got-sum) > 1e-4 {
			t.Errorf("the gradient of bound %d is %v, by channels %v", i/2, got, sum)
		}
	}
}
