package nn

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Morphological dilation: the largest sum of pixel and filter under a window.
var dilationOps = exec.OpTable{
	"Dilation2D":               {Types: exec.Numbers, Build: buildDilation(2, dilate[float32], dilate[float64], dilate[int32], dilate[int64])},
	"Dilation2DBackpropInput":  {Types: exec.Numbers, Build: buildDilation(3, dilateGradInput[float32], dilateGradInput[float64], dilateGradInput[int32], dilateGradInput[int64])},
	"Dilation2DBackpropFilter": {Types: exec.Numbers, Build: buildDilation(3, dilateGradFilter[float32], dilateGradFilter[float64], dilateGradFilter[int32], dilateGradFilter[int64])},
}

// dilation is one run: best calls f with each output element and the elements
// of input and filter whose sum is the first largest.
type dilation struct {
	g geometry
	c *exec.KernelContext
}

func buildDilation(inputs int, f32, f64, i32, i64 func(d *dilation)) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		w := patchWindow(b)
		wrap := func(f func(d *dilation)) exec.Kernel {
			return func(c *exec.KernelContext) error {
				x, filter := c.In(0), c.In(1)
				if len(x.Shape) != 4 || len(filter.Shape) != 3 || filter.Shape[2] != x.Shape[3] {
					return c.Invalid("the filter %s does not fit the images %s", filter.Describe(), x.Describe())
				}
				g, err := w.geometry(c, x.Shape, filter.Shape[0], filter.Shape[1])
				if err != nil {
					return err
				}
				if inputs == 3 {
					if err := poolGradient(c, &g, c.In(2)); err != nil {
						return err
					}
				}
				f(&dilation{g, c})
				return nil
			}
		}
		return exec.ByType(b.DType("T"), wrap(f32), wrap(f64), wrap(i32), wrap(i64))
	}
}

// largest calls f with every output element, the elements of input and filter
// whose sum is the largest, and that. Positions without any have none.
func largest[T exec.Number](d *dilation, f func(out, in, filter int, sum T)) {
	g := &d.g
	xs, fs := exec.Elems[T](d.c.In(0)), exec.Elems[T](d.c.In(1))
	n := g.batch * g.rows * g.cin
	from, with := exec.Scratch[int64](d.c, exec.ScratchA, n), exec.Scratch[int64](d.c, exec.ScratchB, n)
	for i := range from {
		from[i] = -1
	}
	g.taps(func(out, pixel, k int) {
		for ch := range g.cin {
			o, x, y := out*g.cin+ch, pixel*g.cin+ch, k*g.cin+ch
			if from[o] < 0 || xs[x]+fs[y] > xs[from[o]]+fs[with[o]] {
				from[o], with[o] = int64(x), int64(y)
			}
		}
	})
	for o, x := range from {
		if x >= 0 {
			f(o, int(x), int(with[o]), xs[x]+fs[with[o]])
		}
	}
}

func dilate[T exec.Number](d *dilation) {
	g := &d.g
	out := d.c.Out(0, d.c.In(0).DType, g.batch, g.h.out, g.w.out, g.cin)
	elem.Zero(out)
	ds := exec.Elems[T](out)
	largest(d, func(o, _, _ int, sum T) { ds[o] = sum })
}

func dilateGradInput[T exec.Number](d *dilation) { dilateGrad[T](d, 0) }

func dilateGradFilter[T exec.Number](d *dilation) { dilateGrad[T](d, 1) }

// dilateGrad gives the gradient of each output to what it is the sum of.
func dilateGrad[T exec.Number](d *dilation, input int) {
	to := d.c.OutLike(0, d.c.In(input).DType, d.c.In(input))
	elem.Zero(to)
	gs, ds := exec.Elems[T](d.c.In(2)), exec.Elems[T](to)
	largest(d, func(o, in, filter int, _ T) { ds[[2]int{in, filter}[input]] += gs[o] })
}

// taps calls f for every pair of an output position and a kernel position that falls
// into the image: with the offsets of output pixel, input pixel and kernel
// position, in pixels.
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
