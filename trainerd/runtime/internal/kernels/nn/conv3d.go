package nn

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

// Convolution and pooling over volumes, NDHWC. Poolings are computed by their
// definition: nets of volumes are rare, and their kernels small.
var conv3DOps = exec.OpTable{
	"Conv3D":                 {Build: exec.Widened("T", buildVolume(conv3D[float32](gemm.Float32s), conv3D[float64](gemm.Float64s)))},
	"Conv3DBackpropInput":    {Build: exec.Widened("T", buildVolume(conv3DInput[float32](gemm.Float32s), conv3DInput[float64](gemm.Float64s)))},
	"Conv3DBackpropInputV2":  {Build: exec.Widened("T", buildVolume(conv3DInput[float32](gemm.Float32s), conv3DInput[float64](gemm.Float64s)))},
	"Conv3DBackpropFilter":   {Build: exec.Widened("T", buildVolume(conv3DFilter[float32](gemm.Float32s), conv3DFilter[float64](gemm.Float64s)))},
	"Conv3DBackpropFilterV2": {Build: exec.Widened("T", buildVolume(conv3DFilter[float32](gemm.Float32s), conv3DFilter[float64](gemm.Float64s)))},
	"MaxPool3D":              {Build: exec.WidenedImages("T", buildVolume(maxPool3D[float32], maxPool3D[float64]), 0)},
	"MaxPool3DGrad":          {Build: exec.WidenedImages("T", buildVolume(maxPool3DGrad[float32], maxPool3DGrad[float64]), 0, 1, 2)},
	"AvgPool3D":              {Build: exec.WidenedImages("T", buildVolume(avgPool3D[float32], avgPool3D[float64]), 0)},
	"AvgPool3DGrad":          {Build: exec.Widened("T", buildVolume(avgPool3DGrad[float32], avgPool3DGrad[float64]))},
}

// volumes is a window over volumes.
type volumes struct {
	window
	size, stride, dilation [3]int
}

func buildVolume(f32, f64 func(c *exec.KernelContext, v *volumes) error) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		v := &volumes{window: window{padding: b.String("padding")}}
		if f := b.StringOr("data_format", "NDHWC"); f != "NDHWC" {
			b.Fail("no kernel for data_format=%s", f)
		}
		if v.padding != "SAME" && v.padding != "VALID" {
			b.Fail("attribute padding is %q", v.padding)
		}
		v.size, v.stride, v.dilation = depths(b, "ksize"), depths(b, "strides"), depths(b, "dilations")
		return exec.ByFloat(b.DType("T"), func(c *exec.KernelContext) error { return f32(c, v) }, func(c *exec.KernelContext) error { return f64(c, v) })
	}
}

// depths returns the entries of a list for depth, height and width.
func depths(b *exec.OpConstruction, name string) (d [3]int) {
	list := b.Ints(name)
	if list == nil {
		return [3]int{1, 1, 1}
	}
	if len(list) != 5 || list[0] != 1 || list[4] != 1 || min(list[1], list[2], list[3]) < 1 {
		b.Fail("no kernel for %s=%v", name, list)
		return d
	}
	return [3]int(list[1:4])
}

// grid is a window applied to volumes.
type grid struct {
	e     [3]extent
	batch int
}

func (v *volumes) grid(c *exec.KernelContext, x []int, kernel [3]int) (g grid, err error) {
	if len(x) != 5 {
		return g, c.Invalid("volumes must have the shape [n,depth,height,width,channels], not %s", exec.ShapeString(x))
	}
	g.batch = x[0]
	for i := range g.e {
		if g.e[i], err = v.extent(x[1+i], kernel[i], v.stride[i], v.dilation[i], i); err != nil {
			return g, c.Invalid("dimension %d: %v", 1+i, err)
		}
	}
	return g, nil
}

func (g *grid) outShape(channels int) []int {
	return []int{g.batch, g.e[0].out, g.e[1].out, g.e[2].out, channels}
}

// taps calls f for every output voxel, with the input voxels and the places in
// the window that it sees.
func (g *grid) taps(f func(out int, in, at []int)) {
	var in, at []int
	d, h, w := &g.e[0], &g.e[1], &g.e[2]
	out := 0
	for n := range g.batch {
		for od := range d.out {
			dlo, dhi, dbase := d.span(od)
			for oh := range h.out {
				hlo, hhi, hbase := h.span(oh)
				for ow := range w.out {
					wlo, whi, wbase := w.span(ow)
					in, at = in[:0], at[:0]
					for kd := dlo; kd < dhi; kd++ {
						for kh := hlo; kh < hhi; kh++ {
							row := ((n*d.in+dbase+kd*d.dilation)*h.in + hbase + kh*h.dilation) * w.in
							for kw := wlo; kw < whi; kw++ {
								in = append(in, row+wbase+kw*w.dilation)
								at = append(at, (kd*h.kernel+kh)*w.kernel+kw)
							}
						}
					}
					f(out, in, at)
					out++
				}
			}
		}
	}
}

// filterGrid checks a filter of shape [d,h,w,in,out] against volumes.
func (v *volumes) filterGrid(c *exec.KernelContext, x, filter []int) (grid, error) {
	if len(filter) != 5 || len(x) != 5 || x[4] != filter[3] {
		return grid{}, c.Invalid("a filter of shape %s does not fit volumes of %s", exec.ShapeString(filter), exec.ShapeString(x))
	}
	return v.grid(c, x, [3]int(filter[:3]))
}

// gradArgs checks the gradient of a convolution.
func (v *volumes) gradArgs(c *exec.KernelContext, x, filter []int, grad *exec.Tensor) (grid, error) {
	g, err := v.filterGrid(c, x, filter)
	if err == nil && !exec.SameShape(grad.Shape, g.outShape(filter[4])) {
		err = c.Invalid("the gradient has the shape %s, not %s", exec.ShapeString(grad.Shape), exec.ShapeString(g.outShape(filter[4])))
	}
	return g, err
}

// sizesOr returns the shape that input i holds, or, in the older ops, has.
func sizesOr(c *exec.KernelContext, i int) ([]int, error) {
	t := c.In(i)
	shape := t.Shape
	if exec.Indices.Has(t.DType) {
		shape = append([]int{}, c.IntsOf(0, t)...)
	}
	if _, ok := exec.CheckedNumElements(shape); !ok || len(shape) != 5 {
		return nil, c.Invalid("%s is not the shape of volumes", exec.ShapeString(shape))
	}
	return shape, nil
}

func maxPool3D[T exec.Float](c *exec.KernelContext, v *volumes) error {
	x := c.In(0)
	g, err := v.grid(c, x.Shape, v.size)
	if err != nil {
		return err
	}
	n := x.Shape[4]
	xs, d := exec.Elems[T](x), exec.Elems[T](c.Out(0, x.DType, g.outShape(n)...))
	g.taps(func(out int, in, _ []int) {
		best := d[out*n:][:n]
		for ch := range best {
			best[ch] = T(math.Inf(-1))
		}
		for _, p := range in {
			for ch, v := range xs[p*n:][:n] {
				best[ch] = elem.LaterLarger(best[ch], v)
			}
		}
	})
	return nil
}

// nearLargest is how far below the largest value of a window TensorFlow still
// takes a value for it, in volumes only.
const nearLargest = 1e-5

// maxPool3DGrad gives the gradient to all values of a window that are the
// largest, or as good as.
func maxPool3DGrad[T exec.Float](c *exec.KernelContext, v *volumes) error {
	x, top, grad := c.In(0), c.In(1), c.In(2)
	g, err := v.grid(c, x.Shape, v.size)
	if err != nil {
		return err
	}
	n := x.Shape[4]
	if !exec.SameShape(grad.Shape, g.outShape(n)) || !exec.SameShape(top.Shape, grad.Shape) || x.DType != grad.DType || top.DType != grad.DType {
		return c.Invalid("the gradient %s of %s does not fit a result %s", grad.Describe(), x.Describe(), exec.TypeName(x.DType)+exec.ShapeString(g.outShape(n)))
	}
	d := c.OutLike(0, x.DType, x)
	elem.Zero(d)
	xs, ts, gs, ds := exec.Elems[T](x), exec.Elems[T](top), exec.Elems[T](grad), exec.Elems[T](d)
	g.taps(func(out int, in, _ []int) {
		top, grad := ts[out*n:][:n], gs[out*n:][:n]
		for _, p := range in {
			d := ds[p*n:][:n]
			for ch, v := range xs[p*n:][:n] {
				if math.Abs(float64(top[ch]-v)) < nearLargest {
					d[ch] += grad[ch]
				}
			}
		}
	})
	return nil
}

func avgPool3D[T exec.Float](c *exec.KernelContext, v *volumes) error {
	x := c.In(0)
	g, err := v.grid(c, x.Shape, v.size)
	if err != nil {
		return err
	}
	n := x.Shape[4]
	xs, d := exec.Elems[T](x), exec.Elems[T](c.Out(0, x.DType, g.outShape(n)...))
	g.taps(func(out int, in, _ []int) {
		for ch := range n {
			var sum T
			for _, p := range in {
				sum += xs[p*n+ch]
			}
			d[out*n+ch] = sum / T(len(in))
		}
	})
	return nil
}

func avgPool3DGrad[T exec.Float](c *exec.KernelContext, v *volumes) error {
	shape, err := sizesOr(c, 0)
	if err != nil {
		return err
	}
	grad := c.In(1)
	g, err := v.grid(c, shape, v.size)
	if err != nil {
		return err
	}
	n := shape[4]
	if !exec.SameShape(grad.Shape, g.outShape(n)) {
		return c.Invalid("the gradient has the shape %s, not %s", exec.ShapeString(grad.Shape), exec.ShapeString(g.outShape(n)))
	}
	d := c.Out(0, grad.DType, shape...)
	elem.Zero(d)
	gs, ds := exec.Elems[T](grad), exec.Elems[T](d)
	g.taps(func(out int, in, _ []int) {
		for _, p := range in {
			for ch := range n {
				ds[p*n+ch] += gs[out*n+ch] / T(len(in))
			}
		}
	})
	return nil
}
