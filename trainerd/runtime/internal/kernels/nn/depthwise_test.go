package nn_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestDepthwise holds depthwise convolutions of random geometry against the
// textbook's convolution by a filter that keeps the channels apart, and asks for
// the same bits of one processor and three.
func TestDepthwise(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	cases := []convCase{
		{batch: 9, h: 14, w: 30, cin: 24, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 1, top: 1, bottom: 1, left: 1, right: 1}, // shared by processors
		{batch: 10, h: 31, w: 14, cin: 40, kh: 3, kw: 5, sh: 2, sw: 2, dilation: 1, top: 1, bottom: 1, left: 2, right: 2},
		{batch: 2, h: 5, w: 6, cin: 300, kh: 3, kw: 3, sh: 1, sw: 1, dilation: 1}, // more channels than lanes
		{batch: 1, h: 4, w: 5, cin: 3, kh: 3, kw: 3, sh: 3, sw: 4, dilation: 1},   // pixels that no kernel reaches
		{batch: 2, h: 3, w: 3, cin: 5, kh: 2, kw: 2, sh: 1, sw: 1, dilation: 1, top: 4, bottom: 3, left: 5, right: 2},
	}
	for range 40 {
		cases = append(cases, randomConv(r))
	}
	for n, v := range cases {
		times := 1 + n%5/4
		v.cout = v.cin * times
		t.Run(fmt.Sprintf("%d/%+v", n, v), func(t *testing.T) {
			oh, ow := v.out()
			x, f, g := random32(r, v.batch*v.h*v.w*v.cin), random32(r, v.kh*v.kw*v.cout), random32(r, v.batch*oh*ow*v.cout)
			y, dx, dense := v.textbook(x, v.apart(f, times), g)
			df := make([]float64, len(f))
			for i := range f {
				df[i] = dense[i/v.cout*v.cin*v.cout+i%v.cout/times*v.cout+i%v.cout]
			}
			var first []*ckptfmt.Tensor
			for _, processors := range []int{1, 3} {
				got := v.runDepthwise(t, processors, times, x, f, g)
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

// apart returns the filter of a convolution in which an output sees one channel.
func (v *convCase) apart(f []float32, times int) []float32 {
	dense := make([]float32, v.kh*v.kw*v.cin*v.cout)
	for i, value := range f {
		dense[i/v.cout*v.cin*v.cout+i%v.cout/times*v.cout+i%v.cout] = value
	}
	return dense
}
