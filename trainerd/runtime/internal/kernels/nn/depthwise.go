package nn

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// taps serves filters of several outputs for each channel. It calls f for every pair of an output position and a kernel position that
// falls into the image: with the offsets of output pixel, input pixel and
// kernel position, in pixels.
func (g *geometry) taps(f func(out, in, k int)) {
	for n := range g.batch {
		for oh := range g.h.out {
			hlo, hhi, hbase := g.h.span(oh)
			for ow := range g.w.out {
				wlo, whi, wbase := g.w.span(ow)
				o := (n*g.h.out+oh)*g.w.out + ow
				for kh := hlo; kh < hhi; kh++ {
					for kw := wlo; kw < whi; kw++ {
						in := (n*g.h.in+hbase+kh*g.h.dilation)*g.w.in + wbase + kw*g.w.dilation
						f(o, in, kh*g.w.kernel+kw)
					}
				}
			}
		}
	}
}

func depthwise[T exec.Float](c *exec.KernelContext, w *window) error {
	x, f := c.In(0), c.In(1)
	g, err := convGeometry(c, w, x.Shape, f.Shape)
	if err != nil {
		return err
	}
	times := f.Shape[3]
	d := c.Out(0, x.DType, g.batch, g.h.out, g.w.out, g.cin*times)
	xs, fs, ds := exec.Elems[T](x), exec.Elems[T](f), exec.Elems[T](d)
	if times == 1 {
		w := newDepthwiseWork(c, depthwiseOutputs, &g, xs, ds)
		w.spread(fs)
		w.run()
		return nil
	}
	elem.Zero(d)
	g.taps(func(out, in, k int) {
		for ch := range g.cin {
			v, at, from := xs[in*g.cin+ch], (out*g.cin+ch)*times, (k*g.cin+ch)*times
			for q := range times {
				ds[at+q] += v * fs[from+q]
			}
		}
	})
	return nil
}

func depthwiseInputGrad[T exec.Float](c *exec.KernelContext, w *window) error {
	f, grad := c.In(1), c.In(2)
	x, err := shapeInput(c, 0, nil)
	if err != nil {
		return err
	}
	if len(f.Shape) != 4 {
		return c.Invalid("the filter has the shape %s", exec.ShapeString(f.Shape))
	}
	times := f.Shape[3]
	g, err := gradGeometry(c, w, x, f.Shape, grad, f.Shape[2]*times)
	if err != nil {
		return err
	}
	d := c.Out(0, f.DType, x...)
	fs, gs, ds := exec.Elems[T](f), exec.Elems[T](grad), exec.Elems[T](d)
	if times == 1 {
		w := newDepthwiseWork(c, depthwiseInputGrads, &g, ds, gs)
		w.spread(fs)
		w.run()
		return nil
	}
	elem.Zero(d)
	g.taps(func(out, in, k int) {
		for ch := range g.cin {
			at, from := (out*g.cin+ch)*times, (k*g.cin+ch)*times
			for q := range times {
				ds[in*g.cin+ch] += gs[at+q] * fs[from+q]
			}
		}
	})
	return nil
}

func depthwiseFilterGrad[T exec.Float](c *exec.KernelContext, w *window) error {
	x, grad := c.In(0), c.In(2)
	filter, err := shapeInput(c, 1, nil)
	if err != nil {
		return err
	}
	times := filter[3]
	g, err := gradGeometry(c, w, x.Shape, filter, grad, filter[2]*times)
	if err != nil {
		return err
	}
	d := c.Out(0, x.DType, filter...)
	xs, gs, ds := exec.Elems[T](x), exec.Elems[T](grad), exec.Elems[T](d)
	if times == 1 {
		w := newDepthwiseWork(c, depthwiseFilterGrads, &g, xs, gs)
		w.run()
		w.fold(ds)
		return nil
	}
	elem.Zero(d)
	g.taps(func(out, in, k int) {
		for ch := range g.cin {
			v, at, from := xs[in*g.cin+ch], (out*g.cin+ch)*times, (k*g.cin+ch)*times
			for q := range times {
				ds[from+q] += v * gs[at+q]
			}
		}
	})
	return nil
}
