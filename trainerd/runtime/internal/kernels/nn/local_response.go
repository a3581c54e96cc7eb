package nn

import (
	"runtime"

	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// response is local response normalisation across neighbouring channels.
type response struct {
	radius            int
	bias, alpha, beta float32
}

func buildLRN(f func(c *exec.KernelContext, r response) error) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		if dt := b.DType("T"); dt != exec.Float32 {
			b.Fail("no kernel for T=%s", exec.TypeName(dt))
		}
		r := response{b.Int("depth_radius"), float32(b.Float("bias")), float32(b.Float("alpha")), float32(b.Float("beta"))}
		if r.radius < 0 {
			b.Fail("attribute depth_radius is %d", r.radius)
		}
		return func(c *exec.KernelContext) error { return f(c, r) }, nil
	}
}

func lrn(c *exec.KernelContext, r response) error {
	x := c.In(0)
	if len(x.Shape) != 4 {
		return c.Invalid("images must have four dimensions, not %s", x.Describe())
	}
	runResponse(c, responseWork{response: r, x: exec.Elems[float32](x), d: exec.Elems[float32](c.OutLike(0, x.DType, x)), n: x.Dim(-1)})
	return nil
}

func lrnGrad(c *exec.KernelContext, r response) error {
	grad, x, y := c.In(0), c.In(1), c.In(2)
	if len(x.Shape) != 4 || !exec.SameShape(grad.Shape, x.Shape) || !exec.SameShape(y.Shape, x.Shape) {
		return c.Invalid("gradient %s, images %s and outputs %s do not fit", grad.Describe(), x.Describe(), y.Describe())
	}
	runResponse(c, responseWork{response: r, grad: exec.Elems[float32](grad), x: exec.Elems[float32](x), y: exec.Elems[float32](y),
		d: exec.Elems[float32](c.OutLike(0, x.DType, x)), n: x.Dim(-1)})
	return nil
}

// responseWork is a normalisation, or its gradient, shared between processors by
// pixels. Pixels go through it in blocks, with zeros between them, so that the sums
// over windows of channels are sums of whole vectors.
type responseWork struct {
	response
	grad, x, y, d []float32 // grad is nil for the normalisation itself
	n             int       // channels
	block         int       // pixels
	memory        []float32
}

func runResponse(c *exec.KernelContext, work responseWork) {
	if len(work.d) == 0 {
		return
	}
	const elements = 2048 // of a block, whose four vectors fit the first cache
	w := exec.InFrame[responseWork](c)
	*w = work
	w.radius = min(w.radius, w.n-1)
	w.block = min(len(w.d)/w.n, max(1, elements/w.stride()))
	parts := 1
	if len(w.d) >= elem.ParallelElements {
		parts = min(exec.MaxParts, runtime.GOMAXPROCS(0))
	}
	w.memory = exec.Scratch[float32](c, exec.ScratchA, parts*w.part())
	clear(w.memory)
	parallel.Run(parts, w)
	*w = responseWork{}
}

// stride is the distance of pixels in a block.
func (w *responseWork) stride() int { return w.n + w.radius }

// part is the memory that a processor needs.
func (w *responseWork) part() int { return 4 * (w.block*w.stride() + w.radius) }

// Part implements [parallel.Job].
func (w *responseWork) Part(i, n int) {
	memory := w.memory[i*w.part() : (i+1)*w.part()]
	from, to := parallel.Span(len(w.d)/w.n, w.block, i, n)
	for at := from; at < to; at += w.block {
		w.pixels(memory, at, min(w.block, to-at))
	}
}

// pixels does some pixels. The first two vectors of the memory have zeros around
// each pixel.
func (w *responseWork) pixels(memory []float32, first, count int) {
	full, size := len(memory)/4, count*w.stride()
	squares, shares := memory[:size+w.radius], memory[full:full+size+w.radius]
	norms, powers := memory[2*full:2*full+size], memory[3*full:3*full+size]
	for k := range count {
		vec.Square(squares[w.radius+k*w.stride():][:w.n], w.x[(first+k)*w.n:])
	}
	w.windows(norms, squares)
	vec.MulScalar(norms, norms, w.alpha)
	vec.AddScalar(norms, norms, w.bias)
	if w.grad != nil {
		w.backward(shares, norms, powers, first, count)
		return
	}
	w.powers(powers, norms)
	for k := range count {
		at := (first + k) * w.n
		vec.Mul(w.d[at:at+w.n], w.x[at:], powers[k*w.stride():])
	}
}

// backward makes the gradient of some pixels: each channel's share of the norms
// that it is part of, and that of its own output.
func (w *responseWork) backward(shares, norms, powers []float32, first, count int) {
	for k := range count {
		at, row := (first+k)*w.n, shares[w.radius+k*w.stride():][:w.n]
		vec.Mul(row, w.grad[at:], w.y[at:])
		vec.Div(row, row, norms[k*w.stride():])
	}
	w.powers(powers, norms)
	w.windows(norms, shares)
	vec.MulScalar(norms, norms, -2*w.alpha*w.beta)
	for k := range count {
		at := (first + k) * w.n
		vec.Mul(w.d[at:at+w.n], w.x[at:], norms[k*w.stride():])
		vec.AddProduct(w.d[at:at+w.n], w.grad[at:], powers[k*w.stride():])
	}
}

// windows sets d to the sums over all channels within the radius; x begins a
// radius earlier than d.
func (w *responseWork) windows(d, x []float32) {
	copy(d, x)
	for k := 1; k <= 2*w.radius; k++ {
		vec.Add(d[:len(d)-max(0, k-w.radius)], d, x[k:])
	}
}

// powers sets d to x to the power of minus beta; x is lost.
func (w *responseWork) powers(d, x []float32) {
	switch w.beta {
	case 1:
		vec.ScalarDiv(d, x, 1)
	case .5:
		vec.Rsqrt(d, x)
	case .75:
		vec.Rsqrt(d, x)
		vec.Sqrt(x, d)
		vec.Mul(d, d, x)
	default:
		vec.Log(d, x)
		vec.MulScalar(d, d, -w.beta)
		vec.Exp(d, d)
	}
}
