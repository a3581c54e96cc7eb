package image

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// lineSpans is work on the lines of images, or on whole ones, that processors share.
type lineSpans struct {
	count int
	f     func(from, to int)
}

// Part implements [parallel.Job].
func (s *lineSpans) Part(i, n int) {
	if from, to := parallel.Span(s.count, 1, i, n); from < to {
		s.f(from, to)
	}
}

// shareElements is how many elements are worth a hand-off to another processor.
const shareElements = 4 << 10

// inSpans calls f with the numbers below count in spans, on several processors if they
// make that many elements.
func inSpans(count, elements int, f func(from, to int)) {
	parallel.Run(min(exec.MaxParts, elements/shareElements+1), &lineSpans{count, f})
}

// float32sOf returns the elements of a tensor, which are in scratch memory unless they are
// float32s.
func float32sOf(c *exec.KernelContext, x *exec.Tensor) []float32 {
	if x.DType == exec.Float32 {
		return exec.Elems[float32](x)
	}
	d := exec.Scratch[float32](c, exec.ScratchA, x.NumElements())
	if x.DType == exec.Uint8 {
		vec.FromBytes(d, exec.Elems[uint8](x))
		return d
	}
	for i := range d {
		d[i] = float32(elem.RealAt(x, i))
	}
	return d
}
