package nn

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/gemm"
)

var convOps = exec.OpTable{
	"Conv2D":                              {Types: exec.Floats, Build: buildConv(conv[float32](gemm.Float32s), conv[float64](gemm.Float64s))},
	"Conv2DBackpropInput":                 {Types: exec.Floats, Build: buildConv(convInputGrad[float32](gemm.Float32s), convInputGrad[float64](gemm.Float64s))},
	"Conv2DBackpropFilter":                {Types: exec.Floats, Build: buildConv(convFilterGrad[float32](gemm.Float32s), convFilterGrad[float64](gemm.Float64s))},
	"DepthwiseConv2dNative":               {Types: exec.Floats, Build: buildConv(depthwise[float32], depthwise[float64])},
	"DepthwiseConv2dNativeBackpropInput":  {Types: exec.Floats, Build: buildConv(depthwiseInputGrad[float32], depthwiseInputGrad[float64])},
	"DepthwiseConv2dNativeBackpropFilter": {Types: exec.Floats, Build: buildConv(depthwiseFilterGrad[float32], depthwiseFilterGrad[float64])},
}

func buildConv(f32, f64 func(c *exec.KernelContext, w *window) error) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		w := newWindow(b)
		return exec.ByFloat(b.DType("T"), func(c *exec.KernelContext) error { return f32(c, &w) }, func(c *exec.KernelContext) error { return f64(c, &w) })
	}
}

// chunk is how many images go through the column matrix at once: enough for
// large products, few enough to stay in the cache.
func (g *geometry) chunk() int {
	const elements = 1 << 19
	return min(max(1, elements/max(1, g.rows*g.column)), max(1, g.batch))
}

// pointwise reports whether the column matrix is the image itself.
func (g *geometry) pointwise() bool {
	return g.h.kernel == 1 && g.w.kernel == 1 && g.h.stride == 1 && g.w.stride == 1 && g.h.before == 0 && g.w.before == 0 &&
		g.h.out == g.h.in && g.w.out == g.w.in
}

// narrowed returns the same convolution of images of height 1 where a filter is
// as wide as the images, as those over embedded words are: it has one output for
// each line, and products of one row are slow.
func (g geometry) narrowed() geometry {
	if g.w.out != 1 || g.w.kernel != g.w.in || g.w.before != 0 || g.w.dilation != 1 || g.h.out == 1 {
		return g
	}
	g.cin *= g.w.in
	g.w = g.h
	g.h = extent{in: 1, out: 1, kernel: 1, stride: 1, dilation: 1}
	return g
}

// convGeometry checks the shapes of images and filter [kh,kw,cin,cout] against
// each other.
func convGeometry(c *exec.KernelContext, w *window, x, filter []int) (geometry, error) {
	if len(filter) != 4 || len(x) != 4 {
		return geometry{}, c.Invalid("images of shape %s and a filter of shape %s", exec.ShapeString(x), exec.ShapeString(filter))
	}
	if filter[2] != x[3] {
		return geometry{}, c.Invalid("images of shape %s do not fit a filter of shape %s", exec.ShapeString(x), exec.ShapeString(filter))
	}
	return w.geometry(c, x, filter[0], filter[1])
}

func conv[T float32 | float64](mul gemm.Func[T]) func(c *exec.KernelContext, w *window) error {
	return func(c *exec.KernelContext, w *window) error {
		x, f := c.In(0), c.In(1)
		g, err := convGeometry(c, w, x.Shape, f.Shape)
		if err != nil {
			return err
		}
		cout := f.Shape[3]
		d := c.Out(0, x.DType, g.batch, g.h.out, g.w.out, cout)
		convolve(c, mul, g, exec.Elems[T](x), exec.Elems[T](f), exec.Elems[T](d), cout)
		return nil
	}
}

// convolve computes a convolution of images.
func convolve[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], g geometry, xs, fs, d []T, cout int) {
	g = g.narrowed()
	u, apart := g.undilated()
	switch {
	case apart:
		dilatedConv(c, mul, &g, &u, xs, fs, d, cout)
		return
	case winograd[T](&g, cout):
		winogradConv(c, &g, xs, fs, d, cout)
		return
	case g.scattered(g.cin, cout) && g.h.stride*g.w.stride == 1:
		scatterConv(c, &g, xs, fs, d, cout)
		return
	case g.direct(len(fs)):
		directConv(c, &g, xs, fs, d, cout)
		return
	}
	cols := columnMemory[T](c, &g)
	for n := 0; n < g.batch; n += g.chunk() {
		m := min(g.chunk(), g.batch-n)
		a := columnsOf(c, &g, xs[n*g.imageIn:(n+m)*g.imageIn], cols)
		mul(false, false, m*g.rows, cout, g.column, a, fs, 0, d[n*g.rows*cout:(n+m)*g.rows*cout])
	}
}

// columnMemory returns memory for the column matrix of a chunk.
func columnMemory[T float32 | float64](c *exec.KernelContext, g *geometry) []T {
	if g.pointwise() {
		return nil
	}
	return exec.Scratch[T](c, exec.ScratchA, g.chunk()*g.rows*g.column)
}

// columnsOf returns the column matrix of some images, in cols unless it is the
// images themselves.
func columnsOf[T float32 | float64](c *exec.KernelContext, g *geometry, images, cols []T) []T {
	if g.pointwise() {
		return images
	}
	n := len(images) / max(1, g.imageIn)
	moveColumns(c, columnWork[T]{g: *g, images: images, cols: cols[:n*g.rows*g.column], n: n})
	return cols[:n*g.rows*g.column]
}

// columnWork moves images to their column matrices or back, shared between
// processors.
type columnWork[T float32 | float64] struct {
	g            geometry
	images, cols []T
	n            int
	back         bool
}

// Part implements [parallel.Job].
func (w *columnWork[T]) Part(i, n int) {
	size := w.g.rows * w.g.column
	from, to := parallel.Span(w.n, 1, i, n)
	for k := from; k < to; k++ {
		image, cols := w.images[k*w.g.imageIn:(k+1)*w.g.imageIn], w.cols[k*size:(k+1)*size]
		if w.back {
			uncolumns(&w.g, image, cols, 0, w.g.h.out)
		} else {
			columns(&w.g, image, cols)
		}
	}
}

func moveColumns[T float32 | float64](c *exec.KernelContext, w columnWork[T]) {
	kept := exec.InFrame[columnWork[T]](c)
	*kept = w
	if len(w.cols) < elem.ParallelElements {
		kept.Part(0, 1)
	} else {
		parallel.Run(exec.MaxParts, kept)
	}
	*kept = columnWork[T]{}
}

// gradGeometry checks the gradient of a convolution's output against the
// shapes of its inputs.
func gradGeometry(c *exec.KernelContext, w *window, x, filter []int, grad *exec.Tensor, cout int) (geometry, error) {
	g, err := convGeometry(c, w, x, filter)
	if err != nil {
		return g, err
	}
	for _, d := range x {
		if d < 0 {
			return g, c.Invalid("%s is not a shape", exec.ShapeString(x))
		}
	}
	if len(grad.Shape) != 4 || grad.Shape[0] != g.batch || grad.Shape[1] != g.h.out || grad.Shape[2] != g.w.out || grad.Shape[3] != cout {
		return g, c.Invalid("the gradient has the shape %s, the output [%d,%d,%d,%d]", exec.ShapeString(grad.Shape), g.batch, g.h.out, g.w.out, cout)
	}
	return g, nil
}

// shapeInput returns the shape of four dimensions that input i holds. Two
// numbers are height and width, the rest being those of def.
func shapeInput(c *exec.KernelContext, i int, def []int) ([]int, error) {
	s := c.IntsOf(0, c.In(i))
	if len(s) == 2 && len(def) == 4 {
		s = append(s[:0], def[0], s[0], s[1], def[3])
		c.KeepInts(0, s)
	}
	if len(s) != 4 {
		return nil, c.Invalid("the shape %s must have four dimensions", exec.ShapeString(s))
	}
	return s, nil
}

func convInputGrad[T float32 | float64](mul gemm.Func[T]) func(c *exec.KernelContext, w *window) error {
	return func(c *exec.KernelContext, w *window) error {
		f, grad := c.In(1), c.In(2)
		if len(f.Shape) != 4 {
			return c.Invalid("the filter has the shape %s", exec.ShapeString(f.Shape))
		}
		x, err := shapeInput(c, 0, nil)
		if err != nil {
			return err
		}
		cout := f.Shape[3]
		g, err := gradGeometry(c, w, x, f.Shape, grad, cout)
		if err != nil {
			return err
		}
		d := c.Out(0, f.DType, x...)
		convolveInput(c, mul, g, exec.Elems[T](grad), exec.Elems[T](f), exec.Elems[T](d), cout)
		return nil
	}
}

// convolveInput computes the gradient of the images.
func convolveInput[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], g geometry, gs, fs, d []T, cout int) {
	g = g.narrowed()
	u, apart := g.undilated()
	switch {
	case apart:
		dilatedInputGrad(c, mul, &g, &u, gs, fs, d, cout)
		return
	case winograd[T](&g, cout) && g.gathered() && !cheaperScattered[T](&g, cout):
		winogradInputGrad(c, &g, gs, fs, d, cout)
		return
	case g.scattered(cout, g.cin) || cheaperScattered[T](&g, cout):
		scatterInputGrad(c, &g, gs, fs, d, cout)
		return
	case g.direct(len(fs)):
		directInputGrad(c, &g, gs, fs, d, cout)
		return
	case g.pointwise():
		mul(false, true, g.batch*g.rows, g.cin, cout, gs, fs, 0, d)
		return
	}
	clear(d)
	cols := exec.Scratch[T](c, exec.ScratchA, g.chunk()*g.rows*g.column)
	size := g.rows * g.column
	for n := 0; n < g.batch; n += g.chunk() {
		m := min(g.chunk(), g.batch-n)
		mul(false, true, m*g.rows, g.column, cout, gs[n*g.rows*cout:(n+m)*g.rows*cout], fs, 0, cols[:m*size])
		moveColumns(c, columnWork[T]{g: g, images: d[n*g.imageIn : (n+m)*g.imageIn], cols: cols[:m*size], n: m, back: true})
	}
}

func convFilterGrad[T float32 | float64](mul gemm.Func[T]) func(c *exec.KernelContext, w *window) error {
	return func(c *exec.KernelContext, w *window) error {
		x, grad := c.In(0), c.In(2)
		filter, err := shapeInput(c, 1, nil)
		if err != nil {
			return err
		}
		cout := filter[3]
		g, err := gradGeometry(c, w, x.Shape, filter, grad, cout)
		if err != nil {
			return err
		}
		d := c.Out(0, x.DType, filter...)
		convolveFilter(c, mul, g, exec.Elems[T](x), exec.Elems[T](grad), exec.Elems[T](d), cout)
		return nil
	}
}

// convolveFilter computes the gradient of the filter.
func convolveFilter[T float32 | float64](c *exec.KernelContext, mul gemm.Func[T], g geometry, xs, gs, d []T, cout int) {
	g = g.narrowed()
	u, apart := g.undilated()
	switch {
	case apart:
		dilatedFilterGrad(c, mul, &g, &u, xs, gs, d, cout)
		return
	case winograd[T](&g, cout) && g.filters()*g.cin*cout <= largestSums:
		winogradFilterGrad(c, &g, xs, gs, d, cout)
		return
	case g.direct(len(d)):
		directFilterGrad(c, &g, 0, xs, gs, d, cout)
		return
	}
	clear(d)
	cols := columnMemory[T](c, &g)
	for n := 0; n < g.batch; n += g.chunk() {
		m := min(g.chunk(), g.batch-n)
		a := columnsOf(c, &g, xs[n*g.imageIn:(n+m)*g.imageIn], cols)
		mul(true, false, g.column, cout, m*g.rows, a, gs[n*g.rows*cout:(n+m)*g.rows*cout], 1, d)
	}
}
