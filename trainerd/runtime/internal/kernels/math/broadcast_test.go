package math_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestBroadcasts subtracts tensors of random shapes, also with short inner dimensions such as
// groups of channels, and compares each element with its definition.
func TestBroadcasts(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 4))
	for range 200 {
		shape := make([]int64, 1+r.IntN(5))
		var shapes [2][]int64
		for i := range shape {
			shape[i] = 1 + r.Int64N(7)
			for k := range shapes {
				n := shape[i]
				if r.IntN(2) == 0 {
					n = 1
				}
				shapes[k] = append(shapes[k], n)
			}
		}
		for i := range shape {
			shape[i] = max(shapes[0][i], shapes[1][i])
		}
		t.Run(fmt.Sprint(shapes), func(t *testing.T) {
			g := kerneltest.New(t)
			var in [2]string
			var values [2][]float32
			for k, s := range shapes {
				values[k] = make([]float32, elementsOf(s))
				for i := range values[k] {
					values[k][i] = float32(r.NormFloat64())
				}
				in[k] = kerneltest.Tensor(g, s, values[k]...)
			}
			got, err := ckptfmt.Values[float32](g.Run([]string{g.Node("Sub", in[:])})[0])
			want := make([]float32, elementsOf(shape))
			for i := range want {
				want[i] = values[0][placeOf(i, shape, shapes[0])] - values[1][placeOf(i, shape, shapes[1])]
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("got %v (%v), want %v", got, err, want)
			}
		})
	}
}

func elementsOf(shape []int64) int {
	n := 1
	for _, d := range shape {
		n *= int(d)
	}
	return n
}

// placeOf returns where element i of a result is in an operand.
func placeOf(i int, shape, operand []int64) int {
	place, step := 0, 1
	for k := len(shape) - 1; k >= 0; k-- {
		if operand[k] > 1 {
			place += i % int(shape[k]) * step
		}
		i /= int(shape[k])
		step *= int(operand[k])
	}
	return place
}
