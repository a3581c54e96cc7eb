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

// poolCase is a pooling with padding SAME.
type poolCase struct{ batch, h, w, channels, kh, kw, sh, sw int }

// TestPools holds poolings and their gradients against plain loops, with values
// that are equal or no numbers, and asks for the same bits of one processor and
// three.
func TestPools(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	cases := []poolCase{
		{4, 28, 28, 40, 2, 2, 2, 2}, // shared by processors
		{2, 7, 9, 300, 3, 3, 1, 1},  // more channels than are compared at once
		{1, 5, 5, 3, 5, 5, 5, 5},
		{2, 10, 10, 11, 9, 9, 4, 4}, // more pixels than vectors number
		{3, 6, 5, 0, 2, 2, 1, 1},
	}
	for range 20 {
		cases = append(cases, poolCase{r.IntN(4), 1 + r.IntN(9), 1 + r.IntN(9), 1 + r.IntN(20), 1 + r.IntN(4), 1 + r.IntN(4), 1 + r.IntN(3), 1 + r.IntN(3)})
	}
	for n, v := range cases {
		t.Run(fmt.Sprintf("%d/%+v", n, v), func(t *testing.T) {
			x, g := make([]float32, v.batch*v.h*v.w*v.channels), random32(r, v.batch*v.pixels()*v.channels)
			for i := range x {
				x[i] = float32(r.IntN(5))
				if r.IntN(20) == 0 {
					x[i] = float32(math.NaN())
				}
			}
			var first []*ckptfmt.Tensor
			for _, processors := range []int{1, 3} {
				got := v.run(t, processors, x, g)
				for i, want := range v.plain(x, g) {
					if !slices.EqualFunc(kerneltest.Values[float32](t, got[i]), want, sameFloat) {
						t.Errorf("result %d is %v, want %v", i, kerneltest.Values[float32](t, got[i]), want)
					}
				}
				for i := range first {
					if !slices.Equal(got[i].Data, first[i].Data) {
						t.Errorf("result %d has other bits with %d processors", i, processors)
					}
				}
				first = got
			}
		})
	}
}

func sameFloat(x, y float32) bool { return x == y || x != x && y != y }

func (v *poolCase) out() (h, w int) { return (v.h + v.sh - 1) / v.sh, (v.w + v.sw - 1) / v.sw }

func (v *poolCase) pixels() int {
	h, w := v.out()
	return h * w
}

func (v *poolCase) run(t *testing.T, processors int, x, g []float32) []*ckptfmt.Tensor {
	t.Helper()
	before := runtime.GOMAXPROCS(processors)
	defer runtime.GOMAXPROCS(before)
	oh, ow := v.out()
	b := kerneltest.New(t)
	images := kerneltest.Tensor(b, []int64{int64(v.batch), int64(v.h), int64(v.w), int64(v.channels)}, x...)
	pooled := []int64{int64(v.batch), int64(oh), int64(ow), int64(v.channels)}
	grad, outputs := kerneltest.Tensor(b, pooled, g...), kerneltest.Tensor(b, pooled, g...)
	attrs := []any{"ksize", []int64{1, int64(v.kh), int64(v.kw), 1}, "strides", []int64{1, int64(v.sh), int64(v.sw), 1}, "padding", "SAME"}
	shape := kerneltest.Vector(b, int32(v.batch), int32(v.h), int32(v.w), int32(v.channels))
	return b.Run([]string{
		b.Node("MaxPool", []string{images}, attrs...),
		b.Node("MaxPoolGrad", []string{images, outputs, grad}, attrs...),
		b.Node("AvgPool", []string{images}, attrs...),
		b.Node("AvgPoolGrad", []string{shape, grad}, attrs...),
	})
}

// plain returns what run should.
func (v *poolCase) plain(x, g []float32) [][]float32 {
	largest, mean := make([]float32, len(g)), make([]float32, len(g))
	toLargest, toAll := make([]float32, len(x)), make([]float32, len(x))
	oh, ow := v.out()
	top, left := max(0, (oh-1)*v.sh+v.kh-v.h)/2, max(0, (ow-1)*v.sw+v.kw-v.w)/2
	for at := range g {
		c, p := at%max(1, v.channels), at/max(1, v.channels)
		n, y0, x0 := p/(oh*ow), p/ow%oh*v.sh-top, p%ow*v.sw-left
		best, count, nan := -1, 0, false
		var under []int
		for y := max(0, y0); y < min(v.h, y0+v.kh); y++ {
			for w := max(0, x0); w < min(v.w, x0+v.kw); w++ {
				i := ((n*v.h+y)*v.w+w)*v.channels + c
				under = append(under, i)
				nan = nan || x[i] != x[i]
				if best < 0 || x[i] > x[best] {
					best = i
				}
				mean[at] += x[i]
				count++
			}
		}
		largest[at] = x[best]
		if nan {
			largest[at] = float32(math.NaN())
		}
		mean[at] /= float32(count)
		toLargest[best] += g[at]
		for _, i := range under {
			toAll[i] += g[at] / float32(count)
		}
	}
	return [][]float32{largest, toLargest, mean, toAll}
}
