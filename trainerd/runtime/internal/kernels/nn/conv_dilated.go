package nn

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

// A convolution with dilations is several without: pixels that are a dilation apart see no
// others. They are put next to each other, as images of their own, convolved, and the results
// go to their places. So dilated convolutions, too, do without a column matrix, or are
// Winograd's.

// undilated returns the convolution of such images, and whether that pays: where the
// dilations are large for the images, much of it is padding.
func (g *geometry) undilated() (geometry, bool) {
	dilation := g.h.dilation * g.w.dilation
	if dilation == 1 || g.h.stride*g.w.stride != 1 || g.d.kernel > 0 || g.rows*g.batch*g.imageIn == 0 {
		return *g, false
	}
	u := *g
	u.h, u.w = g.h.undilated(), g.w.undilated()
	u.batch *= dilation
	u.imageIn, u.rows = u.h.in*u.w.in*g.cin, u.h.out*u.w.out
	return u, 4*u.rows*dilation <= 5*g.rows
}

func (e *extent) undilated() extent {
	out := (e.out + e.dilation - 1) / e.dilation
	return extent{in: out + e.kernel - 1, out: out, kernel: e.kernel, stride: 1, dilation: 1}
}

// spacing is pixels of a dimension that are a dilation apart: so many from each of the first
// ones, before the image begins, on.
type spacing struct{ size, dilation, before, count int }

// seen are those that filters see, and made those that they make.
func (e *extent) seen() spacing {
	return spacing{e.in, e.dilation, e.before, e.undilated().in}
}

func (e *extent) made() spacing {
	return spacing{e.out, e.dilation, 0, e.undilated().out}
}

// inside returns which of the pixels from start on are in the image.
func (s *spacing) inside(start int) (from, to int) {
	at := s.before - start
	if at > 0 {
		from = (at + s.dilation - 1) / s.dilation
	}
	return min(from, s.count), min(s.count, max(from, (s.size+at+s.dilation-1)/s.dilation))
}

// spacedWork moves pixels of n channels from images to images of those that are apart, or
// back. Processors share the images.
type spacedWork[T float32 | float64] struct {
	h, w           spacing
	n              int
	images, spaced []T
	back           bool
}

// Part implements [parallel.Job].
func (w *spacedWork[T]) Part(i, n int) {
	size := w.h.size * w.w.size * w.n
	from, to := parallel.Span(len(w.images)/size*w.h.dilation, 1, i, n)
	line := w.w.count * w.n
	for k := from; k < to; k++ {
		image, top := w.images[k/w.h.dilation*size:][:size], k%w.h.dilation
		low, high := w.h.inside(top)
		for left := range w.w.dilation {
			spaced := w.spaced[(k*w.w.dilation+left)*w.h.count*line:][:w.h.count*line]
			if !w.back {
				clear(spaced[:low*line])
				clear(spaced[high*line:])
			}
			for y := low; y < high; y++ {
				at := (y*w.h.dilation + top - w.h.before) * w.w.size * w.n
				w.line(image[at:at+w.w.size*w.n], spaced[y*line:(y+1)*line], left)
			}
		}
	}
}

// line moves the pixels of a line that are apart from the one at left.
func (w *spacedWork[T]) line(image, spaced []T, left int) {
	low, high := w.w.inside(left)
	if !w.back {
		clear(spaced[:low*w.n])
		clear(spaced[high*w.n:])
	}
	step, at := w.w.dilation*w.n, (low*w.w.dilation+left-w.w.before)*w.n
	wide := w.n
	if w.w.dilation == 1 {
		wide = (high - low) * w.n // all at once
	}
	for x := low * w.n; x < high*w.n; x += wide {
		if w.back {
			copy(image[at:at+wide], spaced[x:x+wide])
		} else {
			copy(spaced[x:x+wide], image[at:at+wide])
		}
		at += step
	}
}

func moveSpaced[T float32 | float64](c *exec.KernelContext, w spacedWork[T]) {
	kept := exec.InFrame[spacedWork[T]](c)
	*kept = w
	if len(w.spaced) < elem.ParallelElements {
		kept.Part(0, 1)
	} else {
		parallel.Run(exec.MaxParts, kept)
	}
	*kept = spacedWork[T]{}
}

// spacedSeen returns the images of pixels that filters see, in scratch memory k, and
// spacedMade those of gradients.
func spacedSeen[T float32 | float64](c *exec.KernelContext, k int, g, u *geometry, images []T) []T {
	d := exec.Scratch[T](c, k, u.batch*u.imageIn)
	moveSpaced(c, spacedWork[T]{h: g.h.seen(), w: g.w.seen(), n: g.cin, images: images, spaced: d})
	return d
}

func spacedMade[T float32 | float64](c *exec.KernelContext, k int, g, u *geometry, grads []T, cout int) []T {
	d := exec.Scratch[T](c, k, u.batch*u.rows*cout)
	moveSpaced(c, spacedWork[T]{h: g.h.made(), w: g.w.made(), n: cout, images: grads, spaced: d})
	return d
}

// dilatedConv computes a convolution g as u.
func dilatedConv[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], g, u *geometry, xs, fs, d []T, cout int) {
	x := spacedSeen(c, exec.ScratchC, g, u, xs)
	spaced := exec.Scratch[T](c, exec.ScratchD, u.batch*u.rows*cout)
	convolve(c, mul, *u, x, fs, spaced, cout)
	moveSpaced(c, spacedWork[T]{h: g.h.made(), w: g.w.made(), n: cout, images: d, spaced: spaced, back: true})
}

// dilatedInputGrad computes the gradient of the images. Those that no filter sees have none.
func dilatedInputGrad[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], g, u *geometry, gs, fs, d []T, cout int) {
	grads := spacedMade(c, exec.ScratchC, g, u, gs, cout)
	spaced := exec.Scratch[T](c, exec.ScratchD, u.batch*u.imageIn)
	convolveInput(c, mul, *u, grads, fs, spaced, cout)
	clear(d)
	moveSpaced(c, spacedWork[T]{h: g.h.seen(), w: g.w.seen(), n: g.cin, images: d, spaced: spaced, back: true})
}

// dilatedFilterGrad computes the gradient of the filter.
func dilatedFilterGrad[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], g, u *geometry, xs, gs, d []T, cout int) {
	x := spacedSeen(c, exec.ScratchC, g, u, xs)
	grads := spacedMade(c, exec.ScratchD, g, u, gs, cout)
	convolveFilter(c, mul, *u, x, grads, d, cout)
}
