package array_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestTiles compares tiles of random shapes, many of whose dimensions are one or are not
// repeated, with where each element comes from.
func TestTiles(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	sizes := []int{1, 1, 2, 3, 5, 17}
	for range 300 {
		rank := 1 + r.IntN(4)
		shape, times, whole := make([]int, rank), make([]int32, rank), make([]int, rank)
		for i := range shape {
			shape[i], times[i] = sizes[r.IntN(len(sizes))], []int32{1, 1, 1, 2, 3, 20}[r.IntN(6)]
			whole[i] = shape[i] * int(times[i])
		}
		if product(whole) > 1<<15 {
			continue
		}
		x := numbered(product(shape))
		want := make([]float32, product(whole))
		for i := range want {
			at := indexOf(whole, i)
			for k := range at {
				at[k] %= shape[k]
			}
			want[i] = x[placeAt(shape, at)]
		}
		b := kerneltest.New(t)
		got := b.Run([]string{b.Node("Tile", []string{kerneltest.Tensor(b, wide(shape), x...), kerneltest.Vector(b, times...)})})[0]
		if !slices.Equal(kerneltest.Values[float32](t, got), want) {
			t.Errorf("%v tiled by %v is wrong", shape, times)
		}
	}
}

// TestTransposedShortRows moves rows of a few elements that stay together, and matrices whose
// columns become long rows.
func TestTransposedShortRows(t *testing.T) {
	for _, shape := range [][]int{{7, 5, 2}, {7, 5, 3}, {3, 9, 4}, {4, 3, 5}, {600, 5, 4}, {1027, 37, 1}, {515, 50, 1}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			x, want := numbered(product(shape)), make([]float32, product(shape))
			for i, v := range x {
				at := indexOf(shape, i)
				want[placeAt([]int{shape[1], shape[0], shape[2]}, []int{at[1], at[0], at[2]})] = v
			}
			b := kerneltest.New(t)
			got := b.Run([]string{b.Node("Transpose", []string{kerneltest.Tensor(b, wide(shape), x...), kerneltest.Vector[int32](b, 1, 0, 2)})})[0]
			if !slices.Equal(kerneltest.Values[float32](t, got), want) {
				t.Error("elements are at other places")
			}
		})
	}
}

// TestReversedShortRows turns the order of rows of a few elements.
func TestReversedShortRows(t *testing.T) {
	for n := 1; n < 6; n++ {
		shape := []int{3, 7, n}
		x, want := numbered(product(shape)), make([]float32, product(shape))
		for i, v := range x {
			at := indexOf(shape, i)
			want[placeAt(shape, []int{at[0], shape[1] - 1 - at[1], at[2]})] = v
		}
		b := kerneltest.New(t)
		got := b.Run([]string{b.Node("ReverseV2", []string{kerneltest.Tensor(b, wide(shape), x...), kerneltest.Vector[int32](b, 1)})})[0]
		if !slices.Equal(kerneltest.Values[float32](t, got), want) {
			t.Errorf("rows of %d are at other places", n)
		}
	}
}
