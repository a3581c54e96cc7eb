package nn

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// A filter of several outputs for each channel is computed as one of a single
// output for each of so many copies of the channels: it has the same elements.

// repeated returns the geometry of images whose channels are repeated.
func (g geometry) repeated(times int) geometry {
	g.cin *= times
	g.imageIn *= times
	g.column *= times
	return g
}

// repeat returns the images with each channel that many times, in scratch memory.
func repeat[T exec.Float](c *exec.KernelContext, x []T, times int) []T {
	if times == 1 {
		return x
	}
	d := exec.Scratch[T](c, exec.ScratchB, len(x)*times)
	if times == 2 {
		for i, v := range x {
			pair := d[2*i:][:2]
			pair[0], pair[1] = v, v
		}
		return d
	}
	for i, v := range x {
		copies := d[i*times:][:times]
		for q := range copies {
			copies[q] = v
		}
	}
	return d
}

// addRepeated sets d to the sums of the copies of each channel.
func addRepeated[T exec.Float](d, x []T, times int) {
	for i := range d {
		sum := T(0)
		for _, v := range x[i*times:][:times] {
			sum += v
		}
		d[i] = sum
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
	if times == 0 {
		return nil
	}
	r := g.repeated(times)
	work := newDepthwiseWork(c, depthwiseOutputs, &r, repeat(c, xs, times), ds)
	work.spread(fs)
	work.run()
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
	if times == 0 {
		clear(ds)
		return nil
	}
	r, images := g.repeated(times), ds
	if times > 1 {
		images = exec.Scratch[T](c, exec.ScratchB, len(ds)*times)
	}
	work := newDepthwiseWork(c, depthwiseInputGrads, &r, images, gs)
	work.spread(fs)
	work.run()
	if times > 1 {
		addRepeated(ds, images, times)
	}
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
	if times == 0 {
		return nil
	}
	r := g.repeated(times)
	work := newDepthwiseWork(c, depthwiseFilterGrads, &r, repeat(c, xs, times), gs)
	work.run()
	work.fold(ds)
	return nil
}
