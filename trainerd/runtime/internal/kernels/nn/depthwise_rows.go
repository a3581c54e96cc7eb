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
// one of its gradients. It goes over the lines of the images, and sums over the window of
// each pixel; where the whole kernel is inside and its stride is 1, of many at a time, as
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
		w.lane *= lanePixels(g.cin)
	}
	if pass == depthwiseFilterGrads {
		w.blocks = max(1, min(depthwiseBlocks, g.batch))
	}
	w.lanes = exec.Scratch[T](c, exec.ScratchA, w.blocks*g.h.kernel*g.w.kernel*w.lane)
	w.widen(c)
	return w
}

// lanePixels returns how many pixels fill a lane: if possible a whole number of registers.
func lanePixels(channels int) int {
	pixels := max(1, depthwiseLanes/max(1, channels))
	if pixels > 8 {
		pixels &^= 7
	}
	return pixels
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
