package nn

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Poolings whose windows are of different sizes, chosen at random (Graham,
// 2014).
var poolFractionalOps = exec.OpTable{
	"FractionalMaxPool":     {Types: exec.Numbers, Flags: exec.Stateful | exec.Ordered, Build: buildFractional(fractionalMax[float32], fractionalMax[float64], fractionalMax[int32], fractionalMax[int64])},
	"FractionalAvgPool":     {Types: exec.Numbers, Flags: exec.Stateful | exec.Ordered, Build: buildFractional(fractionalAvg[float32], fractionalAvg[float64], fractionalAvg[int32], fractionalAvg[int64])},
	"FractionalMaxPoolGrad": {Types: exec.Numbers, Build: buildFractionalMaxGrad},
	"FractionalAvgPoolGrad": {Types: exec.Numbers, Build: buildFractionalAvgGrad},
}

// fractional says how the windows are made.
type fractional struct {
	height, width float64 // of a window, on average
	pseudo        bool    // sizes follow from one random number, instead of a shuffle
	overlapping   bool    // windows share the pixels at their borders
	fixed         bool    // each run has the same windows
	seed, seed2   uint64
}

func buildFractional(f32, f64, i32, i64 func(c *exec.KernelContext, g *cutImages)) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		f := &fractional{pseudo: b.Bool("pseudo_random"), overlapping: b.Bool("overlapping"), fixed: b.Bool("deterministic")}
		f.seed, f.seed2 = uint64(b.Int("seed")), uint64(b.Int("seed2"))
		if !f.fixed && (f.seed != 0 || f.seed2 != 0) {
			b.Fail("Both seed and seed2 should be 0 if deterministic is false.")
		}
		ratios := b.Attr("pooling_ratio").GetList().GetF()
		if len(ratios) != 4 || ratios[0] != 1 || ratios[3] != 1 || !(ratios[1] >= 1) || !(ratios[2] >= 1) {
			b.Fail("no kernel for pooling_ratio=%v", ratios)
			return nil, b.Err()
		}
		f.height, f.width = float64(ratios[1]), float64(ratios[2])
		if f.fixed && f.seed == 0 && f.seed2 == 0 {
			g := exec.SeededGenerator(0, 0)
			words := philox.NewWords(&g)
			f.seed, f.seed2 = words.Uint64(), words.Uint64()
		}
		run := func(pool func(c *exec.KernelContext, g *cutImages)) exec.Kernel {
			return func(c *exec.KernelContext) error { return f.pool(c, pool) }
		}
		return exec.ByType(b.DType("T"), run(f32), run(f64), run(i32), run(i64))
	}
}

// pool draws the windows and applies a pooling.
func (f *fractional) pool(c *exec.KernelContext, pool func(c *exec.KernelContext, g *cutImages)) error {
	x := c.In(0)
	if len(x.Shape) != 4 {
		return c.Invalid("tensor_in must be 4-dimensional, not %s", x.Describe())
	}
	h, w := int(float64(x.Shape[1])/f.height), int(float64(x.Shape[2])/f.width)
	if h < 1 || w < 1 {
		return c.Invalid("pooling %s leaves no pixels", x.Describe())
	}
	gen := exec.SeededGenerator(f.seed, f.seed2)
	rows, cols := c.Out(1, exec.Int64, h+1), c.Out(2, exec.Int64, w+1)
	f.cuts(&gen, exec.Elems[int64](rows), x.Shape[1])
	f.cuts(&gen, exec.Elems[int64](cols), x.Shape[2])
	g := &cutImages{shape: x.Shape, rows: exec.Elems[int64](rows), cols: exec.Elems[int64](cols), overlapping: f.overlapping}
	c.Out(0, x.DType, x.Shape[0], h, w, x.Shape[3])
	pool(c, g)
	return nil
}

// cuts fills where the windows of a dimension of n pixels begin, and the end.
func (f *fractional) cuts(g *philox.Generator, at []int64, n int) {
	windows := len(at) - 1
	size := make([]int, windows)
	switch {
	case n%windows == 0:
		for i := range size {
			size[i] = n / windows
		}
	case f.pseudo:
		pseudoSizes(g, size, n)
	default:
		for i := range size {
			size[i] = n / windows
			if i < n%windows {
				size[i]++
			}
		}
		own := g.ReserveWords(windows)
		words := philox.NewWords(&own)
		for i := range windows - 1 {
			j := i + int(words.Next()%uint32(windows-i))
			size[i], size[j] = size[j], size[i]
		}
	}
	at[0] = 0
	for i, s := range size {
		at[i+1] = at[i] + int64(s)
	}
}

// pseudoSizes cuts n pixels at multiples of the ratio, moved by a random part
// of it that keeps the first and the last window of the size of the others.
func pseudoSizes(g *philox.Generator, size []int, n int) {
	windows := len(size)
	alpha, k := float64(n)/float64(windows), n/windows
	most := min(float64(k+2)/alpha-1, float64(n+1-k)/alpha-float64(windows-1))
	own := g.ReserveWords(2)
	u := philox.NewWords(&own).Float64() * most
	before := 1
	for i := range windows {
		next := n + 1
		if i+1 < windows {
			next = int(math.Ceil(alpha * (float64(i+1) + u)))
		}
		size[i], before = next-before, next
	}
}

// cutImages is a batch of images, cut into windows.
type cutImages struct {
	shape       []int
	rows, cols  []int64
	overlapping bool
}

// span returns the pixels of window i of a dimension of n.
func (g *cutImages) span(cuts []int64, i, n int) (from, to int) {
	from, to = int(cuts[i]), int(cuts[i+1])
	if g.overlapping {
		to++
	}
	return from, min(to, n)
}

// each calls f with every output pixel and the pixels under its window.
func (g *cutImages) each(f func(out int, pixels []int)) {
	var pixels []int
	out := 0
	for n := range g.shape[0] {
		for i := range len(g.rows) - 1 {
			top, bottom := g.span(g.rows, i, g.shape[1])
			for j := range len(g.cols) - 1 {
				left, right := g.span(g.cols, j, g.shape[2])
				pixels = pixels[:0]
				for y := top; y < bottom; y++ {
					for x := left; x < right; x++ {
						pixels = append(pixels, (n*g.shape[1]+y)*g.shape[2]+x)
					}
				}
				f(out, pixels)
				out++
			}
		}
	}
}

func fractionalMax[T exec.Number](c *exec.KernelContext, g *cutImages) {
	xs, d, n := exec.Elems[T](c.In(0)), exec.Elems[T](c.Slot(0)), g.shape[3]
	g.each(func(out int, pixels []int) {
		for ch := range n {
			best := xs[pixels[0]*n+ch]
			for _, p := range pixels[1:] {
				best = max(best, xs[p*n+ch])
			}
			d[out*n+ch] = best
		}
	})
}

func fractionalAvg[T exec.Number](c *exec.KernelContext, g *cutImages) {
	xs, d, n := exec.Elems[T](c.In(0)), exec.Elems[T](c.Slot(0)), g.shape[3]
	g.each(func(out int, pixels []int) {
		for ch := range n {
			var sum T
			for _, p := range pixels {
				sum += xs[p*n+ch]
			}
			d[out*n+ch] = sum / T(len(pixels))
		}
	})
}

// cutInput checks the windows in inputs i and i+1 against images of a shape,
// and a gradient of them.
func cutInput(c *exec.KernelContext, shape []int, i int, grad *exec.Tensor, overlapping bool) (*cutImages, error) {
	if len(shape) != 4 || len(grad.Shape) != 4 {
		return nil, c.Invalid("images of shape %s with a gradient of %s", exec.ShapeString(shape), grad.Describe())
	}
	for k := range 2 {
		t := c.In(i + k)
		cuts := exec.Elems[int64](t)
		if len(t.Shape) != 1 || len(cuts) != grad.Shape[1+k]+1 || len(cuts) < 2 {
			return nil, c.Invalid("pooling sequence %s for a gradient of %s", t.Describe(), grad.Describe())
		}
		for j, v := range cuts {
			if v < 0 || v > int64(shape[1+k]) || j > 0 && v <= cuts[j-1] {
				return nil, c.Invalid("pooling sequence %v does not ascend to %d", cuts, shape[1+k])
			}
		}
	}
	if grad.Shape[0] != shape[0] || grad.Shape[3] != shape[3] {
		return nil, c.Invalid("a gradient of %s for images of shape %s", grad.Describe(), exec.ShapeString(shape))
	}
	return &cutImages{shape, exec.Elems[int64](c.In(i)), exec.Elems[int64](c.In(i + 1)), overlapping}, nil
}

func buildFractionalMaxGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	overlapping := b.Bool("overlapping")
	return exec.ByType(b.DType("T"), fractionalMaxGrad[float32](overlapping), fractionalMaxGrad[float64](overlapping),
		fractionalMaxGrad[int32](overlapping), fractionalMaxGrad[int64](overlapping))
}

func fractionalMaxGrad[T exec.Number](overlapping bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x, grad := c.In(0), c.In(2)
		g, err := cutInput(c, x.Shape, 3, grad, overlapping)
		if err != nil {
			return err
		}
		if !exec.SameShape(c.In(1).Shape, grad.Shape) {
			return c.Invalid("the output %s has a gradient of %s", c.In(1).Describe(), grad.Describe())
		}
		d := c.OutLike(0, x.DType, x)
		elem.Zero(d)
		xs, gs, ds, n := exec.Elems[T](x), exec.Elems[T](grad), exec.Elems[T](d), g.shape[3]
		g.each(func(out int, pixels []int) {
			for ch := range n {
				best := pixels[0]*n + ch
				for _, p := range pixels[1:] {
					if at := p*n + ch; xs[at] > xs[best] {
						best = at
					}
				}
				ds[best] += gs[out*n+ch]
			}
		})
		return nil
	}
}

func buildFractionalAvgGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	overlapping := b.Bool("overlapping")
	return exec.ByType(b.DType("T"), fractionalAvgGrad[float32](overlapping), fractionalAvgGrad[float64](overlapping),
		fractionalAvgGrad[int32](overlapping), fractionalAvgGrad[int64](overlapping))
}

// fractionalAvgGrad adds up in double precision, whatever the type.
func fractionalAvgGrad[T exec.Number](overlapping bool) exec.Kernel {
	return func(c *exec.KernelContext) error {
		grad := c.In(1)
		shape := append([]int{}, c.IntsOf(0, c.In(0))...)
		g, err := cutInput(c, shape, 2, grad, overlapping)
		if err != nil {
			return err
		}
		d := exec.Elems[T](c.Out(0, grad.DType, shape...))
		c.CheckSize(shape, 8)
		sums, gs, n := make([]float64, len(d)), exec.Elems[T](grad), shape[3]
		g.each(func(out int, pixels []int) {
			for _, p := range pixels {
				for ch := range n {
					sums[p*n+ch] += float64(gs[out*n+ch]) / float64(len(pixels))
				}
			}
		})
		for i, v := range sums {
			d[i] = T(v)
		}
		return nil
	}
}
