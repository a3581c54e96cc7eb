package nn

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// depthwisePass is what a depthwiseWork computes.
type depthwisePass int

const (
	depthwiseOutputs depthwisePass = iota
	depthwiseInputGrads
	depthwiseFilterGrads
)

// depthwiseWork is a depthwise convolution with one filter for each channel, or
// one of its gradients. It goes over the lines of the images, and for each
// position of the kernel over the pixels of a line that it covers; with stride 1
// they follow each other in the input too. A filter's values are repeated along
// lanes of several pixels, so that few channels fill vectors too.
//
// Each line of outputs, or of the images' gradients, is computed by one processor.
// The filter's gradient is summed in blocks of images, whose number depends on the
// batch alone, and the blocks are added in their order.
type depthwiseWork[T exec.Float] struct {
	pass          depthwisePass
	g             geometry
	images, grads []T // grads: of the outputs, or the outputs
	lanes         []T // for each position of the kernel; of the filter's gradient, for each block and position
	lane          int // elements of lanes
	blocks        int
}

// depthwiseLanes is how many elements lanes have, about.
const depthwiseLanes = 256

// depthwiseBlocks is into how many blocks of images a filter's gradient is split.
const depthwiseBlocks = 8

func newDepthwiseWork[T exec.Float](c *exec.KernelContext, pass depthwisePass, g *geometry, images, grads []T) *depthwiseWork[T] {
	w := exec.InFrame[depthwiseWork[T]](c)
	*w = depthwiseWork[T]{pass: pass, g: *g, images: images, grads: grads, lane: g.cin, blocks: 1}
	if g.w.stride == 1 {
		w.lane *= max(1, depthwiseLanes/max(1, g.cin))
	}
	if pass == depthwiseFilterGrads {
		w.blocks = max(1, min(depthwiseBlocks, g.batch))
	}
	w.lanes = exec.Scratch[T](c, exec.ScratchA, w.blocks*g.h.kernel*g.w.kernel*w.lane)
	return w
}

// spread repeats the values of each position of the filter along its lanes.
func (w *depthwiseWork[T]) spread(filter []T) {
	for k := range w.g.h.kernel * w.g.w.kernel {
		l := w.lanesOf(0, k)
		copy(l, filter[k*w.g.cin:(k+1)*w.g.cin])
		for done := w.g.cin; done > 0 && done < len(l); done *= 2 {
			copy(l[done:], l[:done])
		}
	}
}

// fold adds the lanes of all blocks into the filter's gradient.
func (w *depthwiseWork[T]) fold(filter []T) {
	clear(filter)
	for k := range w.g.h.kernel * w.g.w.kernel {
		d := filter[k*w.g.cin : (k+1)*w.g.cin]
		for b := range w.blocks {
			for l := w.lanesOf(b, k); len(l) > 0; l = l[w.g.cin:] {
				vec.Add(d, d, l[:w.g.cin])
			}
		}
	}
}

func (w *depthwiseWork[T]) lanesOf(block, k int) []T {
	at := (block*w.g.h.kernel*w.g.w.kernel + k) * w.lane
	return w.lanes[at : at+w.lane]
}

// units is how many parts the work falls into.
func (w *depthwiseWork[T]) units() int {
	switch w.pass {
	case depthwiseOutputs:
		return w.g.batch * w.g.h.out
	case depthwiseInputGrads:
		return w.g.batch * w.g.h.in
	}
	return w.blocks
}

// run does the work and lets go of the tensors.
func (w *depthwiseWork[T]) run() {
	switch {
	case w.g.cin == 0:
	case w.g.batch*w.g.rows*w.g.column < elem.ParallelElements:
		w.Part(0, 1)
	default:
		parallel.Run(min(exec.MaxParts, w.units()), w)
	}
	w.images, w.grads = nil, nil
}

// Part implements [parallel.Job].
func (w *depthwiseWork[T]) Part(i, n int) {
	from, to := parallel.Span(w.units(), 1, i, n)
	for u := from; u < to; u++ {
		switch w.pass {
		case depthwiseOutputs:
			w.outputs(u/w.g.h.out, u%w.g.h.out)
		case depthwiseInputGrads:
			w.inputGrads(u/w.g.h.in, u%w.g.h.in)
		default:
			w.filterGrads(u)
		}
	}
}

// outputs computes line oh of image n of the output.
func (w *depthwiseWork[T]) outputs(n, oh int) {
	g := &w.g
	line := g.w.out * g.cin
	clear(w.grads[(n*g.h.out+oh)*line:][:line])
	lo, hi, base := g.h.span(oh)
	for kh := lo; kh < hi; kh++ {
		w.taps(0, n, oh, base+kh*g.h.dilation, kh)
	}
}

// inputGrads computes line ih of image n of the images' gradient.
func (w *depthwiseWork[T]) inputGrads(n, ih int) {
	g := &w.g
	line := g.w.in * g.cin
	clear(w.images[(n*g.h.in+ih)*line:][:line])
	for kh := range g.h.kernel {
		at := ih + g.h.before - kh*g.h.dilation
		if at >= 0 && at%g.h.stride == 0 && at/g.h.stride < g.h.out {
			w.taps(0, n, at/g.h.stride, ih, kh)
		}
	}
}

// filterGrads computes a block's part of the filter's gradient.
func (w *depthwiseWork[T]) filterGrads(block int) {
	g := &w.g
	for k := range g.h.kernel * g.w.kernel {
		clear(w.lanesOf(block, k))
	}
	from, to := parallel.Span(g.batch, 1, block, w.blocks)
	for n := from; n < to; n++ {
		for oh := range g.h.out {
			lo, hi, base := g.h.span(oh)
			for kh := lo; kh < hi; kh++ {
				w.taps(block, n, oh, base+kh*g.h.dilation, kh)
			}
		}
	}
}

// taps goes over row kh of the kernel for one line of the output and one of the
// images.
func (w *depthwiseWork[T]) taps(block, n, oh, ih, kh int) {
	g := &w.g
	for kw := range g.w.kernel {
		lo, hi := g.w.covered(kw)
		if lo >= hi {
			continue
		}
		out := ((n*g.h.out+oh)*g.w.out + lo) * g.cin
		in := ((n*g.h.in+ih)*g.w.in + lo*g.w.stride - g.w.before + kw*g.w.dilation) * g.cin
		lanes := w.lanesOf(block, kh*g.w.kernel+kw)
		length, step := (hi-lo)*g.cin, w.lane
		if g.w.stride > 1 {
			step = g.cin
		}
		for done := 0; done < length; done += step {
			m := min(step, length-done)
			w.multiply(w.images[in:in+m], w.grads[out+done:out+done+m], lanes[:m])
			in += step * g.w.stride
		}
	}
}

func (w *depthwiseWork[T]) multiply(image, grad, lanes []T) {
	switch w.pass {
	case depthwiseOutputs:
		vec.AddProduct(grad, image, lanes)
	case depthwiseInputGrads:
		vec.AddProduct(image, grad, lanes)
	default:
		vec.AddProduct(lanes, image, grad)
	}
}

// covered returns the range of output positions at which kernel position k falls
// into the input.
func (e *extent) covered(k int) (lo, hi int) {
	first := e.before - k*e.dilation // the input position of an output is its own times the stride, less first
	if first > 0 {
		lo = (first + e.stride - 1) / e.stride
	}
	if last := e.in - 1 + first; last >= 0 {
		hi = min(e.out, last/e.stride+1)
	}
	return lo, hi
}
