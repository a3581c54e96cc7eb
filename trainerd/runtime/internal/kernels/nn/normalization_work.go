package nn

import (
	"math"
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// normPhase is one pass of batch normalisation over the images.
type normPhase int

const (
	summing         normPhase = iota // of x and its square, both less mean
	normalizing                      // d = (x-mean)*factor + offset
	summingGrad                      // of g, and of g times x less mean
	normalizingGrad                  // d = factor*(g - offset - (x-mean)*slope)
)

// normWork is a pass over images whose channels come last. Several pixels make
// a row of lanes, so that few channels fill vectors too; a value of each channel
// is repeated along the lanes. Sums are made of blocks of fixed size and added
// in their order: they do not depend on the number of processors.
type normWork struct {
	phase                       normPhase
	x, g, d                     []float32
	mean, factor, offset, slope []float32 // lanes
	n, lane, block              int       // channels; elements of lanes; elements of a block
	acc                         []float32 // two lanes for each part
	partial                     []float64 // two sums a channel for each block
	sums, others                []float64 // by channel, of all blocks
	memory                      []float32 // for lanes
}

// Sizes of the passes, in elements.
const (
	normLanes = 256
	normBlock = 1 << 14
)

func newNormWork(c *exec.KernelContext, s channels, x []float32) *normWork {
	w := exec.InFrame[normWork](c)
	*w = normWork{x: x, n: s.n, lane: s.n * max(1, normLanes/s.n)}
	w.block = w.lane * max(1, normBlock/w.lane)
	parts := min(exec.MaxParts, runtime.GOMAXPROCS(0))
	w.acc = exec.Scratch[float32](c, exec.ScratchA, 2*w.lane*parts)
	sums := exec.Scratch[float64](c, exec.ScratchB, 2*w.n*(1+w.blocks()))
	w.sums, w.others, w.partial = sums[:w.n], sums[w.n:2*w.n], sums[2*w.n:]
	w.memory = exec.Scratch[float32](c, exec.ScratchC, 4*w.lane)
	return w
}

func (w *normWork) blocks() int { return (len(w.x) + w.block - 1) / w.block }

// lanes returns memory for lanes.
func (w *normWork) lanes() []float32 {
	l := w.memory[:w.lane]
	w.memory = w.memory[w.lane:]
	return l
}

// spread returns lanes with a value of each channel.
func (w *normWork) spread(values []float32) []float32 {
	l := w.lanes()
	copy(l, values)
	repeatLanes(l, w.n)
	return l
}

// repeatLanes repeats the first n elements.
func repeatLanes(l []float32, n int) {
	for done := n; done < len(l); done *= 2 {
		copy(l[done:], l[:done])
	}
}

// sample returns about the mean of each channel, of some pixels: sums of what
// is left have no common offset to lose their precision to.
func (w *normWork) sample(s channels) []float32 {
	const pixels = 32
	mean := w.acc[:w.n]
	clear(mean)
	step := max(1, s.outer/pixels)
	count := (s.outer + step - 1) / step
	for o := 0; o < s.outer; o += step {
		vec.Add(mean, mean, w.x[o*w.n:(o+1)*w.n])
	}
	vec.DivScalar(mean, mean, float32(count))
	for i, v := range mean {
		if v-v != 0 || math.IsNaN(float64(v)) {
			mean[i] = 0
		}
	}
	// The sums use the memory that this is in.
	return append(w.lanes()[:0], mean...)
}

// do runs the pass, and adds up the sums of the blocks.
func (w *normWork) do() {
	if len(w.x) < elem.ParallelElements {
		w.Part(0, 1)
	} else {
		parallel.Run(len(w.acc)/(2*w.lane), w)
	}
	if w.phase != summing && w.phase != summingGrad {
		return
	}
	both := w.sums[:2*w.n]
	clear(both)
	for b := range w.blocks() {
		for i, v := range w.partial[b*2*w.n : (b+1)*2*w.n] {
			both[i] += v
		}
	}
}

// Part implements [parallel.Job].
func (w *normWork) Part(i, n int) {
	from, to := parallel.Span(w.blocks(), 1, i, n)
	for b := from; b < to; b++ {
		acc := w.acc[2*w.lane*i : 2*w.lane*(i+1)]
		w.pass(b*w.block, min((b+1)*w.block, len(w.x)), acc[:w.lane], acc[w.lane:])
		if w.phase == summing || w.phase == summingGrad {
			partial := w.partial[b*2*w.n : (b+1)*2*w.n]
			foldLanes(partial[:w.n], acc[:w.lane])
			foldLanes(partial[w.n:], acc[w.lane:])
		}
	}
}

// pass goes through the elements between two.
func (w *normWork) pass(from, to int, sums, others []float32) {
	clear(sums)
	clear(others)
	for at := from; at < to; at += w.lane {
		m := min(w.lane, to-at)
		x := w.x[at : at+m]
		switch w.phase {
		case summing:
			vec.Moments(sums[:m], others, x, w.mean)
		case normalizing:
			vec.Normalize(w.d[at:at+m], x, w.mean, w.factor, w.offset)
		case summingGrad:
			vec.GradMoments(sums[:m], others, w.g[at:], x, w.mean)
		case normalizingGrad:
			vec.NormalizeGrad(w.d[at:at+m], w.g[at:], x, w.mean, w.factor, w.offset, w.slope)
		}
	}
}

// foldLanes sets sums to those of the lanes of each channel.
func foldLanes(sums []float64, lanes []float32) {
	clear(sums)
	for at := 0; at < len(lanes); at += len(sums) {
		for i, v := range lanes[at : at+len(sums)] {
			sums[i] += float64(v)
		}
	}
}
