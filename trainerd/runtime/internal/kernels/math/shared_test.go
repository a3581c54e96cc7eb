package math_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kerneltest"
)

// TestShared asks for the same bits of one processor and of four, which share the work, where
// the scales of the channels of each image are applied and where images are reduced to their
// channels.
func TestShared(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	const images, pixels, channels = 9, 100, 96
	x, scales := draw(images*pixels*channels), draw(images*channels)
	run := func(processors int, op string) (data []byte, splits int64) {
		before := runtime.GOMAXPROCS(processors)
		defer runtime.GOMAXPROCS(before)
		b := kerneltest.New(t)
		inputs := []string{kerneltest.Tensor(b, []int64{images, pixels, channels}, x...)}
		if op == "Mul" {
			inputs = append(inputs, kerneltest.Tensor(b, []int64{images, 1, channels}, scales...))
		} else {
			inputs = append(inputs, kerneltest.Vector(b, int32(1)))
		}
		name := b.Node(op, inputs)
		splits = parallel.Splits()
		data = b.Run([]string{name})[0].Data
		return data, parallel.Splits() - splits
	}
	for _, op := range []string{"Mul", "Mean", "Max"} {
		alone, _ := run(1, op)
		shared, splits := run(4, op)
		if !slices.Equal(alone, shared) {
			t.Errorf("%s: other bits with four processors", op)
		}
		if splits == 0 {
			t.Errorf("%s: the processors do not share the work", op)
		}
	}
}
