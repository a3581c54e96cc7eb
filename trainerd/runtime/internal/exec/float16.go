package exec

import (
	"github.com/trainerd/trainerd/internal/float16"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
)

// Narrower returns the function that rounds a float32 to a 16-bit type.
func Narrower(dt tfpb.DataType) func(float32) uint16 {
	if dt == Bfloat16 {
		return float16.ToBfloat16
	}
	return float16.ToHalf
}

// Widener returns the function that makes a 16-bit type a float32.
func Widener(dt tfpb.DataType) func(uint16) float32 {
	if dt == Bfloat16 {
		return float16.FromBfloat16
	}
	return float16.FromHalf
}

// NarrowerOfSlices is [Narrower] for whole slices.
func NarrowerOfSlices(dt tfpb.DataType) func(d []uint16, x []float32) {
	if dt == Bfloat16 {
		return vec.ToBfloat16s
	}
	return vec.ToHalves
}

// WidenerOfSlices is [Widener] for whole slices.
func WidenerOfSlices(dt tfpb.DataType) func(d []float32, x []uint16) {
	if dt == Bfloat16 {
		return vec.FromBfloat16s
	}
	return vec.FromHalves
}

// conversion is a function of slices at work on several processors.
type conversion[D, S Element] struct {
	f func(d []D, x []S)
	d []D
	x []S
}

// The fewest elements whose conversion is worth a second processor, and how many of them
// fill whole cache lines.
const (
	sharedConversion = 1 << 16
	conversionStep   = 64
)

// Part implements [parallel.Job].
func (w *conversion[D, S]) Part(i, n int) {
	from, to := parallel.Span(len(w.d), conversionStep, i, n)
	w.f(w.d[from:to], w.x[from:to])
}

// ConvertSlices calls f for d and x, or for parts of them, on several processors when they
// are long.
func ConvertSlices[D, S Element](c *KernelContext, f func(d []D, x []S), d []D, x []S) {
	if len(d) < sharedConversion {
		f(d, x[:len(d)])
		return
	}
	w := InFrame[conversion[D, S]](c)
	*w = conversion[D, S]{f, d, x}
	parallel.Run(MaxParts, w)
	*w = conversion[D, S]{}
}
