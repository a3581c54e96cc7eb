package nn

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// response is local response normalisation across neighbouring channels.
type response struct {
	radius            int
	bias, alpha, beta float64
}

func buildLRN(f func(c *exec.KernelContext, r response) error) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		if dt := b.DType("T"); dt != exec.Float32 {
			b.Fail("no kernel for T=%s", exec.TypeName(dt))
		}
		r := response{b.Int("depth_radius"), b.Float("bias"), b.Float("alpha"), b.Float("beta")}
		if r.radius < 0 {
			b.Fail("attribute depth_radius is %d", r.radius)
		}
		return func(c *exec.KernelContext) error { return f(c, r) }, nil
	}
}

// norms sets d to bias + alpha * the sum of squares around each channel.
func (r response) norms(d []float64, x []float32) {
	for i := range x {
		s := 0.0
		for _, v := range x[max(0, i-r.radius):min(len(x), i+r.radius+1)] {
			s += float64(v) * float64(v)
		}
		d[i] = r.bias + r.alpha*s
	}
}

func lrn(c *exec.KernelContext, r response) error {
	x := c.In(0)
	if len(x.Shape) != 4 {
		return c.Invalid("images must have four dimensions, not %s", x.Describe())
	}
	n := x.Dim(-1)
	xs, d := exec.Elems[float32](x), exec.Elems[float32](c.OutLike(0, x.DType, x))
	norm := exec.Scratch[float64](c, exec.ScratchA, n)
	for o := 0; o < len(xs); o += n {
		r.norms(norm, xs[o:o+n])
		for i, v := range xs[o : o+n] {
			d[o+i] = float32(float64(v) * math.Pow(norm[i], -r.beta))
		}
	}
	return nil
}

func lrnGrad(c *exec.KernelContext, r response) error {
	grad, x, y := c.In(0), c.In(1), c.In(2)
	if len(x.Shape) != 4 || !exec.SameShape(grad.Shape, x.Shape) || !exec.SameShape(y.Shape, x.Shape) {
		return c.Invalid("gradient %s, images %s and outputs %s do not fit", grad.Describe(), x.Describe(), y.Describe())
	}
	n := x.Dim(-1)
	gs, xs, ys, d := exec.Elems[float32](grad), exec.Elems[float32](x), exec.Elems[float32](y), exec.Elems[float32](c.OutLike(0, x.DType, x))
	norm := exec.Scratch[float64](c, exec.ScratchA, n)
	clear(d)
	for o := 0; o < len(xs); o += n {
		r.norms(norm, xs[o:o+n])
		for i := range n {
			g := float64(gs[o+i])
			shared := -2 * r.alpha * r.beta * float64(ys[o+i]) / norm[i] * g
			for k := max(0, i-r.radius); k < min(n, i+r.radius+1); k++ {
				d[o+k] += float32(float64(xs[o+k]) * shared)
			}
			d[o+i] += float32(math.Pow(norm[i], -r.beta) * g)
		}
	}
	return nil
}
