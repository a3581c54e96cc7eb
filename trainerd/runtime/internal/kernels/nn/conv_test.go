package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// convCase is a convolution of images with explicit padding.
type convCase struct {
	batch, h, w, cin, cout, kh, kw, sh, sw, dilation int
	top, bottom, left, right                         int
}

func (v *convCase) out() (h, w int) {
	return (v.h+v.top+v.bottom-(v.kh-1)*v.dilation-1)/v.sh + 1, (v.w+v.left+v.right-(v.kw-1)*v.dilation-1)/v.sw + 1
}

func randomConv(r *rand.Rand) convCase {
	v := convCase{batch: 1 + r.IntN(12), h: 4 + r.IntN(12), w: 4 + r.IntN(20), cin: 1 + r.IntN(20), cout: 1 + r.IntN(40), kh: 1 + r.IntN(4), kw: 1 + r.IntN(4),
		sh: 1 + r.IntN(3), sw: 1 + r.IntN(3), dilation: 1, top: r.IntN(3), bottom: r.IntN(3), left: r.IntN(3), right: r.IntN(3)}
	if r.IntN(2) == 0 {
		v.sh, v.sw = 1, 1
	}
	if r.IntN(6) == 0 && v.h > 2*v.kh && v.w > 2*v.kw {
		v.dilation = 2
	}
	return v
}

func random32(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// textbook returns the convolution and both gradients, summed in float64.
func (v *convCase) textbook(x, f, g []float32) (y, dx, df []float64) {
	oh, ow := v.out()
	y, dx, df = make([]float64, v.batch*oh*ow*v.cout), make([]float64, len(x)), make([]float64, len(f))
	for at := range y {
		o, p := at%v.cout, at/v.cout
		n, i, j := p/(oh*ow), p/ow%oh, p%ow
		for tap := range v.kh * v.kw {
			r, c := i*v.sh-v.top+tap/v.kw*v.dilation, j*v.sw-v.left+tap%v.kw*v.dilation
			if r < 0 || r >= v.h || c < 0 || c >= v.w {
				continue
			}
			for k := range v.cin {
				a, b := ((n*v.h+r)*v.w+c)*v.cin+k, (tap*v.cin+k)*v.cout+o
				y[at] += float64(x[a]) * float64(f[b])
				dx[a] += float64(g[at]) * float64(f[b])
				df[b] += float64(x[a]) * float64(g[at])
			}
		}
	}
	return y, dx, df
}

// near compares sums of float32 with exact ones. A processor without vectors adds
// thousands of products one after the other.
func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	tolerance := 1e-4
	if !blas.AddsWhole[float32](1) {
		tolerance = 3e-4
	}
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	for i, v := range got {
		if math.Abs(float64(v)-want[i]) > tolerance*(1+math.Abs(want[i])) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, v, want[i])
		}
	}
}

// TestConvolutions holds convolutions and their gradients of random geometry
// against the textbook's, and asks for the same bits of one processor and three.
func TestConvolutions(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	cases := []convCase{
		// Dilations: of series, that look back, of few and many channels, of images, with a filter that sees no whole image, and for which the images are too small.
		{batch: 3, h: 1, w: 64, cin: 16, cout: 24, kh: 1, kw: 3, sh: 1, sw: 1, dilation: 8, left: 16},
		{batch: 2, h: 1, w: 30, cin: 3, cout: 5, kh: 1, kw: 2, sh: 1, sw: 1, dilation: 4, left: 9, right: 7},
		{batch: 2, h: 12, w: 16, cin: 20, cout: 33, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 2, top: 2, bottom: 2, left: 2, right: 2},
		{batch: 3, h: 17, w: 15, cin: 13, cout: 14, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 3, top: 1, left: 4, right: 1},
		{batch: 4, h: 24, w: 20, cin: 2, cout: 3, kh: 2, kw: 4, sh: 1, sw: 1, dilation: 5, left: 15},
		{batch: 2, h: 9, w: 9, cin: 16, cout: 16, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 4, top: 4, bottom: 4, left: 4, right: 4},
		// Several panels of columns, some of them partial; a filter whose units are shared.
		{batch: 3, h: 7, w: 8, cin: 48, cout: 70, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 1, top: 1, bottom: 1, left: 1, right: 1},
		{batch: 3, h: 6, w: 6, cin: 50, cout: 64, kh: 5, kw: 5, sh: 2, sw: 2, dilation: 1, top: 1, bottom: 2, left: 1, right: 2},
		// Tiles of Winograd's: all inside, cut off, far outside, few channels in part of a panel.
		{batch: 2, h: 12, w: 12, cin: 16, cout: 32, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 1, top: 1, bottom: 1, left: 1, right: 1},
		{batch: 9, h: 9, w: 7, cin: 17, cout: 12, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 1},
		{batch: 3, h: 8, w: 11, cin: 12, cout: 40, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 1, top: 5, bottom: 2, left: 4, right: 3},
		{batch: 5, h: 4, w: 5, cin: 80, cout: 24, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 1, top: 2, left: 2, right: 1},
		// The same with strides: full and partial tiles, phases of several sizes, gradients that begin at two places.
		{batch: 3, h: 14, w: 14, cin: 16, cout: 33, kh: 5, kw: 5, sh: 2, sw: 2, dilation: 1, top: 1, bottom: 2, left: 1, right: 2},
		{batch: 4, h: 16, w: 12, cin: 32, cout: 16, kh: 4, kw: 4, sh: 2, sw: 2, dilation: 1, top: 1, bottom: 1, left: 1, right: 1},
		{batch: 5, h: 13, w: 11, cin: 12, cout: 12, kh: 6, kw: 5, sh: 2, sw: 2, dilation: 1, top: 2, bottom: 1, left: 2, right: 2},
		{batch: 5, h: 13, w: 16, cin: 12, cout: 20, kh: 6, kw: 6, sh: 2, sw: 2, dilation: 1, top: 1, bottom: 3, left: 2},
		{batch: 9, h: 11, w: 9, cin: 13, cout: 14, kh: 4, kw: 6, sh: 2, sw: 2, dilation: 1},
		// Groups of positions: full and partial tiles, blocks that end within an image and go over several, one dimension alone.
		{batch: 5, h: 14, w: 14, cin: 16, cout: 33, kh: 5, kw: 5, sh: 1, sw: 1, dilation: 1, top: 2, bottom: 2, left: 2, right: 2},
		{batch: 2, h: 40, w: 33, cin: 12, cout: 16, kh: 5, kw: 5, sh: 1, sw: 1, dilation: 1},
		{batch: 9, h: 7, w: 6, cin: 20, cout: 50, kh: 4, kw: 4, sh: 1, sw: 1, dilation: 1, top: 1, bottom: 2, left: 1, right: 2},
		// A gradient that is scattered as that takes less: several lines of pixels at a time.
		{batch: 3, h: 12, w: 12, cin: 20, cout: 50, kh: 5, kw: 5, sh: 1, sw: 1, dilation: 1},
		{batch: 4, h: 11, w: 13, cin: 14, cout: 12, kh: 7, kw: 7, sh: 1, sw: 1, dilation: 1, top: 3, bottom: 3, left: 3, right: 3},
		{batch: 3, h: 12, w: 15, cin: 13, cout: 17, kh: 6, kw: 3, sh: 1, sw: 1, dilation: 1, top: 6, bottom: 1, left: 4, right: 2},
		{batch: 3, h: 12, w: 15, cin: 13, cout: 17, kh: 3, kw: 5, sh: 1, sw: 1, dilation: 1, top: 1, left: 2},
		// Images, and outputs, of few channels: strides, padding beyond the kernel, images that are done some lines at a time.
		{batch: 3, h: 28, w: 27, cin: 3, cout: 24, kh: 5, kw: 5, sh: 2, sw: 2, dilation: 1, top: 1, bottom: 2, left: 1, right: 2},
		{batch: 2, h: 12, w: 13, cin: 8, cout: 17, kh: 3, kw: 4, sh: 1, sw: 3, dilation: 1, left: 2, right: 1},
		{batch: 2, h: 50, w: 40, cin: 20, cout: 3, kh: 5, kw: 7, sh: 1, sw: 1, dilation: 1, top: 6, bottom: 1, left: 3, right: 8},
		{batch: 9, h: 9, w: 8, cin: 33, cout: 1, kh: 3, kw: 2, sh: 1, sw: 1, dilation: 1, top: 1, bottom: 1},
		{batch: 2, h: 14, w: 15, cin: 16, cout: 6, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 2, top: 1, bottom: 2, left: 2},
		{batch: 3, h: 9, w: 11, cin: 20, cout: 7, kh: 3, kw: 3, sh: 2, sw: 1, dilation: 1, top: 1},
		// Filters as wide as the images, as over embedded words.
		{batch: 4, h: 17, w: 16, cin: 1, cout: 12, kh: 3, kw: 16, sh: 1, sw: 1, dilation: 1},
		{batch: 3, h: 20, w: 9, cin: 3, cout: 7, kh: 4, kw: 9, sh: 2, sw: 1, dilation: 1, top: 2, bottom: 1},
		{batch: 3, h: 20, w: 9, cin: 3, cout: 7, kh: 4, kw: 9, sh: 2, sw: 3, dilation: 1, bottom: 5, right: 2},
		{batch: 2, h: 9, w: 6, cin: 2, cout: 5, kh: 9, kw: 6, sh: 1, sw: 1, dilation: 1},
		// Strides beyond the kernel, and pixels that no kernel reaches.
		{batch: 2, h: 11, w: 12, cin: 9, cout: 5, kh: 1, kw: 2, sh: 3, sw: 4, dilation: 1, left: 2},
	}
	for n := range 80 {
		v := randomConv(r)
		if n%4 == 3 { // as Winograd computes them
			v.kh, v.kw, v.sh, v.sw, v.dilation, v.cin, v.cout = 3, 3, 1, 1, 1, v.cin+8, v.cout+8
		}
		if n%8 == 5 {
			v.kh, v.kw, v.sh, v.sw, v.dilation, v.cin, v.cout, v.h, v.w = 4+r.IntN(3), 4+r.IntN(3), 2, 2, 1, v.cin+8, v.cout+8, v.h+6, v.w+6
		}
		if n%4 == 2 {
			v.kh, v.kw, v.sh, v.sw, v.dilation, v.cin, v.cout, v.h, v.w = 3+r.IntN(5), 3+r.IntN(5), 1, 1, 1, v.cin+8, v.cout+8, v.h+8, v.w+8
		}
		cases = append(cases, v)
	}
	for n, v := range cases {
		t.Run(fmt.Sprintf("%d/%+v", n, v), func(t *testing.T) {
			oh, ow := v.out()
			x, f, g := random32(r, v.batch*v.h*v.w*v.cin), random32(r, v.kh*v.kw*v.cin*v.cout), random32(r, v.batch*oh*ow*v.cout)
			y, dx, df := v.textbook(x, f, g)
			var first []*ckptfmt.Tensor
			for _, processors := range []int{1, 3} {
				got := v.run(t, processors, x, f, g)
				near(t, "the output", kerneltest.Values[float32](t, got[0]), y)
				near(t, "the gradient of the images", kerneltest.Values[float32](t, got[1]), dx)
				near(t, "the gradient of the filter", kerneltest.Values[float32](t, got[2]), df)
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

func (v *convCase) run(t *testing.T, processors int, x, f, g []float32) []*ckptfmt.Tensor {
	t.Helper()
	return v.runOps(t, processors, "Conv2D", "Conv2DBackprop", v.cout, x, f, g)
}

func (v *convCase) runDepthwise(t *testing.T, processors, times int, x, f, g []float32) []*ckptfmt.Tensor {
	t.Helper()
	return v.runOps(t, processors, "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackprop", times, x, f, g)
}

// runOps runs a convolution and both gradients with a filter of so many columns.
func (v *convCase) runOps(t *testing.T, processors int, forward, backward string, columns int, x, f, g []float32) []*ckptfmt.Tensor {
	t.Helper()
	before := runtime.GOMAXPROCS(processors)
	defer runtime.GOMAXPROCS(before)
	n := func(list ...int) []int64 {
		var out []int64
		for _, d := range list {
			out = append(out, int64(d))
		}
		return out
	}
	oh, ow := v.out()
	b := kerneltest.New(t)
	shape, filter := []int32{int32(v.batch), int32(v.h), int32(v.w), int32(v.cin)}, []int32{int32(v.kh), int32(v.kw), int32(v.cin), int32(columns)}
	images, kernel := kerneltest.Tensor(b, n(v.batch, v.h, v.w, v.cin), x...), kerneltest.Tensor(b, n(v.kh, v.kw, v.cin, columns), f...)
	grad := kerneltest.Tensor(b, n(v.batch, oh, ow, v.cout), g...)
	attrs := []any{"strides", n(1, v.sh, v.sw, 1), "dilations", n(1, v.dilation, v.dilation, 1), "padding", "EXPLICIT",
		"explicit_paddings", n(0, 0, v.top, v.bottom, v.left, v.right, 0, 0)}
	return b.Run([]string{
		b.Node(forward, []string{images, kernel}, attrs...),
		b.Node(backward+"Input", []string{kerneltest.Vector(b, shape...), kernel, grad}, attrs...),
		b.Node(backward+"Filter", []string{images, kerneltest.Vector(b, filter...), grad}, attrs...),
	})
}

// TestBatchNorm holds batch normalization in training, and its gradient,
// against sums in float64, for few channels and many.
func TestBatchNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, shape := range [][]int{{1, 1, 1, 3}, {2, 3, 5, 1}, {4, 9, 7, 16}, {8, 32, 32, 16}, {16, 8, 8, 70}, {3, 2, 2, 300}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			n := shape[3]
			pixels := shape[0] * shape[1] * shape[2]
			x, g := random32(r, pixels*n), random32(r, pixels*n)
			for i := range x {
				x[i] = x[i]*.3 + float32(i%n%7)*5 // means far from zero
			}
			scale, offset := random32(r, n), random32(r, n)
			b := kerneltest.New(t)
			dims := []int64{int64(shape[0]), int64(shape[1]), int64(shape[2]), int64(n)}
			images, grad := kerneltest.Tensor(b, dims, x...), kerneltest.Tensor(b, dims, g...)
			s, o, none := kerneltest.Vector(b, scale...), kerneltest.Vector(b, offset...), kerneltest.Vector[float32](b)
			forward := b.Node("FusedBatchNormV3", []string{images, s, o, none, none}, "epsilon", float32(1e-5), "is_training", true)
			backward := b.Node("FusedBatchNormGradV3", []string{grad, images, s, forward + ":3", forward + ":4", forward + ":5"}, "epsilon", float32(1e-5), "is_training", true)
			got := b.Run([]string{forward + ":0", forward + ":3", backward + ":0", backward + ":1", backward + ":2"})
			y, mean, dx, dscale, doffset := textbookNorm(x, g, scale, offset, n)
			for i, want := range [][]float64{y, mean, dx, dscale, doffset} {
				loose := slices.Max(want) - slices.Min(want) + 1
				for k, v := range kerneltest.Values[float32](t, got[i]) {
					if math.Abs(float64(v)-want[k]) > 1e-3*loose {
						t.Fatalf("result %d: element %d is %v, want %v", i, k, v, want[k])
					}
				}
			}
		})
	}
}

func textbookNorm(x, g, scale, offset []float32, n int) (y, mean, dx, dscale, doffset []float64) {
	y, dx, mean, dscale, doffset = make([]float64, len(x)), make([]float64, len(x)), make([]float64, n), make([]float64, n), make([]float64, n)
	count := float64(len(x) / n)
	for c := range n {
		variance := 0.0
		for i := c; i < len(x); i += n {
			mean[c] += float64(x[i]) / count
		}
		for i := c; i < len(x); i += n {
			variance += (float64(x[i]) - mean[c]) * (float64(x[i]) - mean[c]) / count
		}
		inv := 1 / math.Sqrt(variance+1e-5)
		for i := c; i < len(x); i += n {
			h := (float64(x[i]) - mean[c]) * inv
			y[i] = h*float64(scale[c]) + float64(offset[c])
			dscale[c] += float64(g[i]) * h
			doffset[c] += float64(g[i])
		}
		for i := c; i < len(x); i += n {
			h := (float64(x[i]) - mean[c]) * inv
			dx[i] = float64(scale[c]) * inv * (float64(g[i]) - doffset[c]/count - h*dscale[c]/count)
		}
	}
	return y, mean, dx, dscale, doffset
}
