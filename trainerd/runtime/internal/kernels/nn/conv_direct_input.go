package nn

import (
	"github.com/trainerd/trainerd/internal/blas"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// phase is what the gradient of an image is at every stride-th pixel, from pixel
// p on: a convolution of the output's gradient with stride 1. Of the kernel, only
// the positions r, r+stride, .. take part, backwards. Pixel p+u*stride is the sum
// over t of gradient u+ahead-t times kernel position r+t*stride.
type phase struct{ p, r, taps, ahead, count int }

func (e *extent) phase(p int) phase {
	r := (p + e.before) % e.stride
	return phase{p: p, r: r, taps: max(0, (e.kernel-r+e.stride-1)/e.stride), ahead: (p + e.before) / e.stride,
		count: max(0, (e.in-p+e.stride-1)/e.stride)}
}

// border returns the pixels that all phases together need before and after a
// line of the output's gradient; the length includes both.
func (e *extent) border() (before, length int) {
	end := 1
	for p := range e.stride {
		v := e.phase(p)
		before, end = max(before, v.taps-1-v.ahead), max(end, v.count+v.ahead)
	}
	return before, before + end
}

// directInputGrad is a convolution of the gradient by the filter turned by half
// and transposed, for each phase of the strides.
func directInputGrad[T float32 | float64](c *exec.KernelContext, g *geometry, gs, fs, d []T, cout int) {
	w := exec.InFrame[directWork[T]](c)
	var v canvas
	v.top, v.h = g.h.border()
	v.left, v.w = g.w.border()
	*w = directWork[T]{
		images: gs, d: d, canvas: v, h: g.h.out, w: g.w.out, cin: cout, n: g.cin, output: g.imageIn, batch: g.batch,
		part: v.elements(cout), panel: blas.PanelColumns[T](), multiply: w.multiply, sweeps: w.sweeps, depth: g.d,
		step: panelElements(g.h.kernel*g.w.kernel*cout, g.cin),
	}
	w.start(c, g.d.positions()*w.step)
	at := 0
	for py := range g.h.stride {
		for px := range g.w.stride {
			y, x := g.h.phase(py), g.w.phase(px)
			if y.count*x.count == 0 {
				continue
			}
			w.sweeps = append(w.sweeps, sweep{
				filter: at, rows: y.taps, inner: x.taps * cout, lines: y.count, count: x.count,
				from: ((v.top+y.ahead-y.taps+1)*v.w + v.left + x.ahead - x.taps + 1) * cout, line: v.w * cout, step: cout,
				to: (py*g.w.in + px) * g.cin, toLine: g.h.stride * g.w.in * g.cin, toStep: g.w.stride * g.cin,
			})
			for p := range g.d.positions() {
				turnPanels(w.filter[p*w.step+at:], fs[p*g.column*cout:], g, y, x, w.panel, cout)
			}
			at += panelElements(y.taps*x.taps*cout, g.cin)
		}
	}
	w.run()
}

// turnPanels makes panels of what a filter [kh,kw,cin,cout] is in a phase.
func turnPanels[T float32 | float64](dst, fs []T, g *geometry, y, x phase, panel, cout int) {
	rows := y.taps * x.taps * cout
	for t := range y.taps * x.taps {
		kh, kw := y.r+(y.taps-1-t/x.taps)*g.h.stride, x.r+(x.taps-1-t%x.taps)*g.w.stride
		from := fs[(kh*g.w.kernel+kw)*g.cin*cout:]
		for j := 0; j < g.cin; j += panel {
			width, used := panelWidth(panel, j, g.cin), min(panel, g.cin-j)
			to := dst[j*rows+t*cout*width:]
			blas.Transpose(to, width, from[j*cout:], used, cout)
			for l := range cout * min(1, width-used) {
				clear(to[l*width+used : (l+1)*width])
			}
		}
	}
}
