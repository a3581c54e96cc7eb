package array_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestMoves compares ops that move elements, on tensors of random shapes, with where each
// element has to go.
func TestMoves(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for n := range 60 {
		shape := make([]int, 2+r.IntN(3))
		for i := range shape {
			shape[i] = 1 + r.IntN(5)
		}
		t.Run(fmt.Sprint(n, shape), func(t *testing.T) {
			x := numbered(product(shape))
			testRoll(t, r, shape, x)
			testReverseSequence(t, r, shape, x)
		})
	}
}

func testRoll(t *testing.T, r *rand.Rand, shape []int, x []float32) {
	var shifts, axes []int32
	total := make([]int, len(shape))
	for range 1 + r.IntN(3) {
		a, by := r.IntN(len(shape)), r.IntN(13)-6
		shifts, axes = append(shifts, int32(by)), append(axes, int32(a))
		total[a] += by
	}
	want := make([]float32, len(x))
	for i, v := range x {
		at := indexOf(shape, i)
		for a := range at {
			at[a] = ((at[a]+total[a])%shape[a] + shape[a]) % shape[a]
		}
		want[placeAt(shape, at)] = v
	}
	b := kerneltest.New(t)
	got := b.Run([]string{b.Node("Roll", []string{kerneltest.Tensor(b, wide(shape), x...), kerneltest.Vector(b, shifts...), kerneltest.Vector(b, axes...)})})[0]
	if !slices.Equal(kerneltest.Values[float32](t, got), want) {
		t.Errorf("rolled by %v along %v: %v, want %v", shifts, axes, got, want)
	}
}

func testReverseSequence(t *testing.T, r *rand.Rand, shape []int, x []float32) {
	dims := r.Perm(len(shape))
	seq, batch := dims[0], dims[1]
	lens := make([]int32, shape[batch])
	for i := range lens {
		lens[i] = int32(r.IntN(shape[seq] + 1))
	}
	want := make([]float32, len(x))
	for i := range x {
		at := indexOf(shape, i)
		if n := int(lens[at[batch]]); at[seq] < n {
			at[seq] = n - 1 - at[seq]
		}
		want[i] = x[placeAt(shape, at)]
	}
	b := kerneltest.New(t)
	got := b.Run([]string{b.Node("ReverseSequence", []string{kerneltest.Tensor(b, wide(shape), x...), kerneltest.Vector(b, lens...)}, "seq_dim", seq, "batch_dim", batch)})[0]
	if !slices.Equal(kerneltest.Values[float32](t, got), want) {
		t.Errorf("dimension %d reversed by %v along %d: %v, want %v", seq, lens, batch, got, want)
	}
}

func indexOf(shape []int, i int) []int {
	at := make([]int, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		at[k], i = i%shape[k], i/shape[k]
	}
	return at
}

func placeAt(shape, at []int) (i int) {
	for k, n := range shape {
		i = i*n + at[k]
	}
	return i
}
