package nn

import (
	"math"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

var poolOps = exec.OpTable{
	"MaxPool":       {Build: exec.WidenedImages("T", buildPool(1, maxPools), 0)},
	"MaxPoolV2":     {Build: exec.WidenedImages("T", buildPool(1, maxPools), 0)},
	"MaxPoolGrad":   {Build: exec.WidenedImages("T", buildPool(3, maxPoolGrads), 0, 1, 2)},
	"MaxPoolGradV2": {Build: exec.WidenedImages("T", buildPool(3, maxPoolGrads), 0, 1, 2)},
	"AvgPool":       {Build: exec.WidenedImages("T", buildPool(1, poolKernels{exec.Float32: avgPool[float32], exec.Float64: avgPool[float64]}), 0)},
	"AvgPoolGrad":   {Build: exec.Widened("T", buildPool(2, poolKernels{exec.Float32: avgPoolGrad[float32], exec.Float64: avgPoolGrad[float64]}))},
}

// pooling is a window and its size.
type pooling struct {
	window
	kh, kw int
}

// poolKernel pools one window of the images.
type poolKernel func(c *exec.KernelContext, p *pooling) error

// poolKernels are a pooling's kernels by type.
type poolKernels map[tfpb.DataType]poolKernel

var maxPools = poolKernels{
	exec.Float32: maxPool[float32],
	exec.Float64: maxPool[float64],
	exec.Int32:   maxPool[int32],
	exec.Int64:   maxPool[int64],
	exec.Int8:    maxPool[int8],
	exec.Int16:   maxPool[int16],
	exec.Uint8:   maxPool[uint8],
	exec.Uint16:  maxPool[uint16],
}

var maxPoolGrads = poolKernels{
	exec.Float32: maxPoolGrad[float32],
	exec.Float64: maxPoolGrad[float64],
	exec.Int32:   maxPoolGrad[int32],
	exec.Int64:   maxPoolGrad[int64],
	exec.Int8:    maxPoolGrad[int8],
	exec.Int16:   maxPoolGrad[int16],
	exec.Uint8:   maxPoolGrad[uint8],
	exec.Uint16:  maxPoolGrad[uint16],
	exec.Uint32:  maxPoolGrad[uint32],
	exec.Uint64:  maxPoolGrad[uint64],
}

// buildPool builds a pooling whose window may come, in the ops that end in V2,
// from the inputs after the first data ones.
func buildPool(data int, kernels poolKernels) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		p := pooling{window: newWindow(b)}
		p.kh, p.kw = spatial(b, "ksize", 0)
		dynamic := b.NumInputs() > data
		if !dynamic && p.kh == 0 {
			b.Fail("attribute ksize is missing")
		}
		wrap := func(f poolKernel) exec.Kernel {
			return func(c *exec.KernelContext) error {
				q := &p
				if dynamic {
					r, err := p.fromInputs(c, data)
					if err != nil {
						return err
					}
					q = &r
				}
				return f(c, q)
			}
		}
		dt := b.DType("T")
		f := kernels[dt]
		if f == nil {
			return exec.ByType(dt, nil, nil, nil, nil)
		}
		return wrap(f), nil
	}
}

// fromInputs returns p with window size and strides from inputs i and i+1.
func (p pooling) fromInputs(c *exec.KernelContext, i int) (pooling, error) {
	for k, to := range [][2]*int{{&p.kh, &p.kw}, {&p.sh, &p.sw}} {
		v := c.IntsOf(0, c.In(i+k))
		if len(v) != 4 || v[0] != 1 || v[3] != 1 || v[1] < 1 || v[2] < 1 {
			return p, c.Invalid("input %d is %s, not [1,height,width,1]", i+k, exec.ShapeString(v))
		}
		*to[0], *to[1] = v[1], v[2]
	}
	return p, nil
}

// eachWindow calls f for every output pixel and channel row with the input
// pixels under its window, in raster order.
func (g *geometry) eachWindow(f func(out int, pixels []int), c *exec.KernelContext) {
	pixels := c.ScratchInts(1, g.h.kernel*g.w.kernel)
	for n := range g.batch {
		for oh := range g.h.out {
			hlo, hhi, hbase := g.h.span(oh)
			for ow := range g.w.out {
				wlo, whi, wbase := g.w.span(ow)
				pixels = pixels[:0]
				for kh := hlo; kh < hhi; kh++ {
					for kw := wlo; kw < whi; kw++ {
						pixels = append(pixels, (n*g.h.in+hbase+kh)*g.w.in+wbase+kw)
					}
				}
				f((n*g.h.out+oh)*g.w.out+ow, pixels)
			}
		}
	}
}

// leastOf returns the least value of a type: minus infinity of a real one.
func leastOf[T exec.Number]() T {
	switch exec.ElemSize(exec.DTypeOf[T]()) {
	case 1:
		return leastInteger[T](math.MinInt8)
	case 2:
		return leastInteger[T](math.MinInt16)
	case 4:
		if exec.DTypeOf[T]() == exec.Float32 {
			return T(math.Inf(-1))
		}
		return leastInteger[T](math.MinInt32)
	}
	if exec.DTypeOf[T]() == exec.Float64 {
		return T(math.Inf(-1))
	}
	return leastInteger[T](math.MinInt64)
}

// leastInteger returns what is the least signed integer, 0 for unsigned types.
func leastInteger[T exec.Number](v int64) T {
	var zero T
	if zero-1 > 0 {
		return 0
	}
	return T(v)
}

func maxPool[T exec.Number](c *exec.KernelContext, p *pooling) error {
	x := c.In(0)
	g, err := p.geometry(c, x.Shape, p.kh, p.kw)
	if err != nil {
		return err
	}
	d := c.Out(0, x.DType, g.batch, g.h.out, g.w.out, g.cin)
	runPool(c, poolWork[T]{g: g, pass: largestUnder, images: exec.Elems[T](x), pooled: exec.Elems[T](d)})
	return nil
}

// maxPoolGrad gives the gradient to the first of the largest under a window.
func maxPoolGrad[T exec.Number](c *exec.KernelContext, p *pooling) error {
	x, grad := c.In(0), c.In(2)
	g, err := p.geometry(c, x.Shape, p.kh, p.kw)
	if err != nil {
		return err
	}
	if err := poolGradient(c, &g, grad); err != nil {
		return err
	}
	d := c.OutLike(0, x.DType, x)
	runPool(c, poolWork[T]{g: g, pass: passToLargest, images: exec.Elems[T](x), pooled: exec.Elems[T](grad), grads: exec.Elems[T](d)})
	return nil
}

func poolGradient(c *exec.KernelContext, g *geometry, grad *exec.Tensor) error {
	want := c.ScratchInts(2, 0)
	want = append(want, g.batch, g.h.out, g.w.out, g.cin)
	if !exec.SameShape(grad.Shape, want) {
		return c.Invalid("the gradient has the shape %s, the output %s", exec.ShapeString(grad.Shape), exec.ShapeString(want))
	}
	return nil
}

func avgPool[T exec.Float](c *exec.KernelContext, p *pooling) error {
	x := c.In(0)
	g, err := p.geometry(c, x.Shape, p.kh, p.kw)
	if err != nil {
		return err
	}
	d := c.Out(0, x.DType, g.batch, g.h.out, g.w.out, g.cin)
	runPool(c, poolWork[T]{g: g, pass: meanUnder, images: exec.Elems[T](x), pooled: exec.Elems[T](d)})
	return nil
}

func avgPoolGrad[T exec.Float](c *exec.KernelContext, p *pooling) error {
	grad := c.In(1)
	shape, err := shapeInput(c, 0, nil)
	if err != nil {
		return err
	}
	g, err := p.geometry(c, shape, p.kh, p.kw)
	if err != nil {
		return err
	}
	if err := poolGradient(c, &g, grad); err != nil {
		return err
	}
	d := c.Out(0, grad.DType, shape...)
	runPool(c, poolWork[T]{g: g, pass: passToAll, pooled: exec.Elems[T](grad), grads: exec.Elems[T](d)})
	return nil
}
