package nn

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// outputs computes line oh of image n of the output.
func (w *depthwiseWork[T]) outputs(n, oh int) {
	g := &w.g
	d := w.grads[(n*g.h.out+oh)*g.w.out*g.cin:][:g.w.out*g.cin]
	clear(d)
	lo, hi, base := g.h.span(oh)
	row := (n*g.h.in + base + lo*g.h.dilation) * g.w.in
	f := vec.Window{Rows: hi - lo, XRow: g.h.dilation * g.w.in * g.cin, XTap: g.w.dilation * g.cin, WRow: g.w.kernel * w.lane, WTap: w.lane}
	from, to := g.w.inside()
	for ow, columns := 0, 1; ow < g.w.out; ow += columns {
		columns = 1
		if from <= ow && ow < to && g.w.stride == 1 {
			columns = to - ow
		}
		first, last, at := g.w.span(ow)
		f.Taps = last - first
		w.add(d[ow*g.cin:][:columns*g.cin], w.images, (row+at+first*g.w.dilation)*g.cin, lo*g.w.kernel+first, &f)
	}
}

// inputGrads computes line ih of image n of the images' gradient.
func (w *depthwiseWork[T]) inputGrads(n, ih int) {
	g := &w.g
	d := w.images[(n*g.h.in+ih)*g.w.in*g.cin:][:g.w.in*g.cin]
	clear(d)
	if g.h.stride > 1 || g.w.stride > 1 {
		w.scatter(n, ih)
		return
	}
	lo, hi := g.h.reached(ih)
	row := (n*g.h.out + ih + g.h.before - lo*g.h.dilation) * g.w.out
	f := vec.Window{Rows: hi - lo, XRow: -g.h.dilation * g.w.out * g.cin, XTap: -g.w.dilation * g.cin, WRow: g.w.kernel * w.lane, WTap: w.lane}
	from, to := (g.w.kernel-1)*g.w.dilation-g.w.before, min(g.w.in, g.w.out-g.w.before) // where all of the kernel reaches
	for iw, columns := 0, 1; iw < g.w.in; iw += columns {
		columns = 1
		if from <= iw && iw < to {
			columns = to - iw
		}
		first, last := g.w.reached(iw)
		f.Taps = last - first
		w.add(d[iw*g.cin:][:columns*g.cin], w.grads, (row+iw+g.w.before-first*g.w.dilation)*g.cin, lo*g.w.kernel+first, &f)
	}
}

// add adds products with the lanes of the filter from position k on to a line.
func (w *depthwiseWork[T]) add(d, x []T, at, k int, f *vec.Window) {
	if f.Rows <= 0 || f.Taps <= 0 {
		return
	}
	for len(d) > 0 {
		m := min(len(d), w.lane)
		vec.AddWindow(d[:m], x, at, w.lanes[k*w.lane:], f)
		d, at = d[m:], at+m
	}
}

// scatter adds the products of a line's gradient that strides leave.
func (w *depthwiseWork[T]) scatter(n, ih int) {
	g := &w.g
	for kh := range g.h.kernel {
		at := ih + g.h.before - kh*g.h.dilation
		if at < 0 || at%g.h.stride != 0 || at/g.h.stride >= g.h.out {
			continue
		}
		for kw := range g.w.kernel {
			lo, hi := g.w.covered(kw)
			lanes := w.lanesOf(0, kh*g.w.kernel+kw)[:g.cin]
			for ow := lo; ow < hi; ow++ {
				to := ((n*g.h.in+ih)*g.w.in + ow*g.w.stride - g.w.before + kw*g.w.dilation) * g.cin
				from := ((n*g.h.out+at/g.h.stride)*g.w.out + ow) * g.cin
				vec.AddProduct(w.images[to:to+g.cin], w.grads[from:from+g.cin], lanes)
			}
		}
	}
}

// bandElements is how many elements of the lines of a band stay in the first cache, about.
const bandElements = 4096

// filterGrads computes a block's part of the filter's gradient, some lines after the others.
func (w *depthwiseWork[T]) filterGrads(block int) {
	g := &w.g
	for k := range g.h.kernel * g.w.kernel {
		clear(w.lanesOf(block, k))
	}
	band := max(1, bandElements/max(1, g.w.out*g.cin))
	from, to := parallel.Span(g.batch, 1, block, w.blocks)
	for n := from; n < to; n++ {
		for oh := 0; oh < g.h.out; oh += band {
			w.bandGrads(block, n, oh, min(oh+band, g.h.out))
		}
	}
}

// bandGrads adds what lines from one to another of the output contribute.
func (w *depthwiseWork[T]) bandGrads(block, n, from, to int) {
	g := &w.g
	for k := range g.h.kernel * g.w.kernel {
		kh, kw := k/g.w.kernel, k%g.w.kernel
		top, bottom := g.h.covered(kh)
		top, bottom = max(top, from), min(bottom, to)
		lo, hi := g.w.covered(kw)
		if top >= bottom || lo >= hi {
			continue
		}
		in := ((n*g.h.in+top*g.h.stride-g.h.before+kh*g.h.dilation)*g.w.in + lo*g.w.stride - g.w.before + kw*g.w.dilation) * g.cin
		grads := w.grads[((n*g.h.out+top)*g.w.out+lo)*g.cin:]
		lanes, length := w.lanesOf(block, k), (hi-lo)*g.cin
		f := vec.Window{Rows: bottom - top, Taps: length / w.lane, XRow: g.h.stride * g.w.in * g.cin, XTap: w.lane * g.w.stride, WRow: g.w.out * g.cin, WTap: w.lane}
		vec.AddWindow(lanes, w.images, in, grads, &f)
		done := f.Taps * w.lane // of each line; what is left is less than the lanes
		f.Taps = 1
		vec.AddWindow(lanes[:length-done], w.images, in+done, grads[min(done, len(grads)):], &f)
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

// inside returns the range of output positions at which the whole kernel falls into the
// input.
func (e *extent) inside() (lo, hi int) {
	lo, _ = e.covered(0)
	_, hi = e.covered(e.kernel - 1)
	return lo, hi
}

// reached returns the range of kernel positions by which input position i is part of an
// output, with stride 1.
func (e *extent) reached(i int) (lo, hi int) {
	if beyond := i + e.before - (e.out - 1); beyond > 0 {
		lo = (beyond + e.dilation - 1) / e.dilation
	}
	return lo, min(e.kernel, (i+e.before)/e.dilation+1)
}

// fewChannels are so few that pixels at the edges, which the kernel covers in part, would fill no
// register: then zeros around what is read make whole lines of pixels that it covers.
const fewChannels = 8

// widen makes the lines that are read wider by zeros, where that is worth it.
func (w *depthwiseWork[T]) widen(c *exec.KernelContext) {
	e := &w.g.w
	if w.g.cin >= fewChannels || e.stride > 1 || w.g.h.stride > 1 || w.pass == depthwiseFilterGrads {
		return
	}
	reach := (e.kernel - 1) * e.dilation
	if w.pass == depthwiseOutputs {
		left, right := e.before, max(0, e.out-1+reach-e.before-(e.in-1))
		w.images = wider(c, w.images, w.g.batch*w.g.h.in, e.in*w.g.cin, left*w.g.cin, right*w.g.cin)
		e.in, e.before = left+e.in+right, 0
		return
	}
	left, right := max(0, reach-e.before), max(0, e.in+e.before-e.out)
	w.grads = wider(c, w.grads, w.g.batch*w.g.h.out, e.out*w.g.cin, left*w.g.cin, right*w.g.cin)
	e.out, e.before = left+e.out+right, left+e.before
}

// wider returns lines with zeros on both sides, in scratch memory.
func wider[T exec.Float](c *exec.KernelContext, x []T, lines, size, left, right int) []T {
	if left+right == 0 {
		return x
	}
	all := left + size + right
	d := exec.Scratch[T](c, exec.ScratchC, lines*all)
	for i := range lines {
		line := d[i*all:][:all]
		clear(line[:left])
		copy(line[left:], x[i*size:][:size])
		clear(line[left+size:])
	}
	return d
}
