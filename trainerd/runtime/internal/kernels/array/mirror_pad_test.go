package array_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestMirrorPad compares paddings of random shapes, and their gradients, with the definition:
// an element outside is the one as far inside of the border.
func TestMirrorPad(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	shapes := [][]int{{}, {1}, {3, 60, 50, 9}}
	for range 60 {
		shape := make([]int, 1+r.IntN(5))
		for i := range shape {
			shape[i] = 1 + r.IntN(6)
		}
		shapes = append(shapes, shape)
	}
	for n, shape := range shapes {
		edge := n % 2
		t.Run(fmt.Sprint(shape, edge), func(t *testing.T) {
			pads, padded := make([]int32, 0, 2*len(shape)), make([]int, len(shape))
			for i, n := range shape {
				for range 2 {
					p := 0
					if n > edge && r.IntN(3) > 0 {
						p = r.IntN(n - edge + 1)
					}
					pads = append(pads, int32(p))
					padded[i] += p
				}
				padded[i] += n
			}
			x, from := numbered(product(shape)), mirrored(shape, padded, pads, edge)
			grads, want, wantGrad := numbered(len(from)), make([]float32, len(from)), make([]float32, len(x))
			for o, at := range from {
				want[o] = x[at]
				wantGrad[at] += grads[o]
			}
			b := kerneltest.New(t)
			mode := []string{"SYMMETRIC", "REFLECT"}[edge]
			p := kerneltest.Tensor(b, []int64{int64(len(shape)), 2}, pads...)
			got := b.Run([]string{
				b.Node("MirrorPad", []string{kerneltest.Tensor(b, wide(shape), x...), p}, "mode", mode),
				b.Node("MirrorPadGrad", []string{kerneltest.Tensor(b, wide(padded), grads...), p}, "mode", mode),
			})
			if !slices.Equal(kerneltest.Values[float32](t, got[0]), want) || !slices.Equal(kerneltest.Values[float32](t, got[1]), wantGrad) {
				t.Errorf("paddings %v give %v, want %v, and the gradient %v, want %v", pads, got[0], want, got[1], wantGrad)
			}
		})
	}
}

// mirrored returns for each padded element the one that it mirrors.
func mirrored(shape, padded []int, pads []int32, edge int) []int {
	from := make([]int, product(padded))
	for o := range from {
		rest, step := o, 1
		for i := len(shape) - 1; i >= 0; i-- {
			at := rest%padded[i] - int(pads[2*i])
			if at < 0 {
				at = -at - 1 + edge
			} else if at >= shape[i] {
				at = 2*shape[i] - 1 - at - edge
			}
			from[o] += at * step
			rest, step = rest/padded[i], step*shape[i]
		}
	}
	return from
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func numbered(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%1000 + 1)
	}
	return x
}

func wide(shape []int) (list []int64) {
	for _, d := range shape {
		list = append(list, int64(d))
	}
	return list
}
