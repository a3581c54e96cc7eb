package array_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestTransposeRotations compares transpositions of float32, which are those of matrices where
// dimensions rotate, with those of integers, which move element by element.
func TestTransposeRotations(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		rank := 2 + r.IntN(4)
		shape, perm := make([]int64, rank), make([]int32, rank)
		size := 1
		for i := range shape {
			shape[i] = int64(r.IntN(12))
			size *= int(shape[i])
		}
		fixed := r.IntN(rank - 1)
		by := 1 + r.IntN(rank-fixed-1)
		for i := range perm {
			perm[i] = int32(i)
			if i >= fixed {
				perm[i] = int32(fixed + (i-fixed+by)%(rank-fixed))
			}
		}
		if n%4 == 0 {
			r.Shuffle(rank, func(i, j int) { perm[i], perm[j] = perm[j], perm[i] })
		}
		values := make([]float32, size)
		for i := range values {
			values[i] = float32(i)
		}
		g := kerneltest.New(t)
		x, p := kerneltest.Tensor(g, shape, values...), kerneltest.Vector(g, perm...)
		whole := g.Node("Cast", []string{x}, "DstT", tfpb.DataType_DT_INT32)
		back := g.Node("Cast", []string{g.Node("Transpose", []string{whole, p})}, "DstT", tfpb.DataType_DT_FLOAT)
		out := g.Run([]string{g.Node("Transpose", []string{x, p}), back})
		if !slices.Equal(out[0].Data, out[1].Data) || !slices.Equal(out[0].Shape, out[1].Shape) {
			t.Errorf("%v by %v: float32 is transposed in another way than int32", shape, perm)
		}
	}
}
