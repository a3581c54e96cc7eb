package nn

import (
	"math"
	"slices"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Ops of quantization: the fake one by which models are trained for later, and
// the buckets of feature columns.
var fakeQuantOps = exec.OpTable{
	"FakeQuantWithMinMaxArgs":                   {Build: buildFakeQuantArgs},
	"FakeQuantWithMinMaxArgsGradient":           {Build: buildFakeQuantArgsGradient},
	"FakeQuantWithMinMaxVars":                   {Build: buildFakeQuant(false)},
	"FakeQuantWithMinMaxVarsGradient":           {Build: buildFakeQuantGradient(false)},
	"FakeQuantWithMinMaxVarsPerChannel":         {Build: buildFakeQuant(true)},
	"FakeQuantWithMinMaxVarsPerChannelGradient": {Build: buildFakeQuantGradient(true)},
}

// levels are those to which numbers are rounded.
type levels struct {
	first, last float32
}

// fakeQuantLevels reads the attributes of the number of levels.
func fakeQuantLevels(b *exec.OpConstruction) levels {
	bits := b.Int("num_bits")
	if bits < 2 || bits > 16 {
		b.Fail("num_bits is %d, outside [2, 16]", bits)
		bits = 8
	}
	l := levels{0, float32(int(1)<<bits - 1)}
	if b.Bool("narrow_range") {
		l.first = 1
	}
	return l
}

// quantizer rounds numbers to the levels between two bounds, which are moved a
// little so that 0 is one of them.
type quantizer struct {
	vec.Quantizer[float32]
	off bool // both bounds are 0: all numbers become 0
}

func (l levels) between(low, high float32) quantizer {
	if low == 0 && high == 0 {
		return quantizer{off: true}
	}
	scale := (high - low) / (l.last - l.first)
	zero := l.first - low/scale
	switch {
	case zero < l.first:
		zero = l.first
	case zero > l.last:
		zero = l.last
	default:
		zero = float32(math.Round(float64(zero)))
	}
	q := vec.Quantizer[float32]{Low: (l.first - zero) * scale, High: (l.last - zero) * scale, Inverse: 1 / scale, Scale: scale}
	q.Zero = floor32(-q.Low*q.Inverse + 0.5)
	return quantizer{Quantizer: q}
}

func floor32(x float32) float32 { return float32(math.Floor(float64(x))) }

// roundAll rounds x.
func (q *quantizer) roundAll(d, x []float32) {
	if q.off {
		clear(d)
		return
	}
	vec.Quantize(d, x, &q.Quantizer)
}

func (q *quantizer) round(x float32) float32 {
	if q.off {
		return 0
	}
	return q.Round(x)
}

// gradient sets d to the gradient of x, and returns those of the bounds.
func (q *quantizer) gradient(d, g, x []float32) (low, high float32) {
	var lower, higher [256]float32
	var toLow, toHigh float64
	for len(d) > 0 {
		n := min(len(d), len(lower))
		vec.QuantizeGrad(d[:n], lower[:n], higher[:n], g[:n], x[:n], &q.Quantizer)
		toLow += vec.Sum(lower[:n])
		toHigh += vec.Sum(higher[:n])
		d, g, x = d[n:], g[n:], x[n:]
	}
	return float32(toLow), float32(toHigh)
}

// contains reports whether a number is within the bounds.
func (q *quantizer) contains(x float32) bool { return q.off || x >= q.Low && x <= q.High }

func fakeQuantArgs(b *exec.OpConstruction) quantizer {
	low, high := b.Float("min"), b.Float("max")
	if low >= high {
		b.Fail("min %v is not below max %v", low, high)
	}
	return fakeQuantLevels(b).between(float32(low), float32(high))
}

func buildFakeQuantArgs(b *exec.OpConstruction) (exec.Kernel, error) {
	q := fakeQuantArgs(b)
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		d := exec.Elems[float32](c.OutLike(0, exec.Float32, x))
		q.roundAll(d, exec.Elems[float32](x))
		return nil
	}, nil
}

func buildFakeQuantArgsGradient(b *exec.OpConstruction) (exec.Kernel, error) {
	q := fakeQuantArgs(b)
	return func(c *exec.KernelContext) error {
		grad, x := c.In(0), c.In(1)
		if err := sameShape(c, grad, x); err != nil {
			return err
		}
		d, g := exec.Elems[float32](c.OutLike(0, exec.Float32, x)), exec.Elems[float32](grad)
		for i, v := range exec.Elems[float32](x) {
			d[i] = g[i]
			if !q.contains(v) {
				d[i] *= 0 // keeps NaN and the sign
			}
		}
		return nil
	}, nil
}

func sameShape(c *exec.KernelContext, a, b *exec.Tensor) error {
	if !slices.Equal(a.Shape, b.Shape) {
		return c.Invalid("%s and %s have not the same shape", a.Describe(), b.Describe())
	}
	return nil
}

// keptQuantizers is kept in the frame, so that a step does not allocate them.
type keptQuantizers struct{ all []quantizer }

// quantizers returns those for the bounds in inputs i and i+1: one, or one for
// each element of x's last dimension.
func quantizers(c *exec.KernelContext, i int, x *exec.Tensor, l levels, perChannel bool) ([]quantizer, error) {
	low, high := c.In(i), c.In(i+1)
	n := 1
	if perChannel {
		if len(x.Shape) == 0 {
			return nil, c.Invalid("%s has no channels", x.Describe())
		}
		n = x.Shape[len(x.Shape)-1]
	}
	if low.NumElements() != n || high.NumElements() != n || perChannel && (len(low.Shape) != 1 || len(high.Shape) != 1) {
		return nil, c.Invalid("%d bounds are wanted, not %s and %s", n, low.Describe(), high.Describe())
	}
	kept := exec.InFrame[keptQuantizers](c)
	kept.all = kept.all[:0]
	for i := range n {
		kept.all = append(kept.all, l.between(exec.Elems[float32](low)[i], exec.Elems[float32](high)[i]))
	}
	return kept.all, nil
}

func buildFakeQuant(perChannel bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		l := fakeQuantLevels(b)
		return func(c *exec.KernelContext) error {
			x := c.In(0)
			all, err := quantizers(c, 1, x, l, perChannel)
			if err != nil {
				return err
			}
			d := exec.Elems[float32](c.OutLike(0, exec.Float32, x))
			xs := exec.Elems[float32](x)
			if len(all) == 1 {
				all[0].roundAll(d, xs)
				return nil
			}
			for at := 0; at < len(xs); at += len(all) {
				for k := range all {
					d[at+k] = all[k].round(xs[at+k])
				}
			}
			return nil
		}, nil
	}
}

// buildFakeQuantGradient passes the gradient of numbers within the bounds on to
// them, and that of the others to the bound that they are beyond.
func buildFakeQuantGradient(perChannel bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		l := fakeQuantLevels(b)
		return func(c *exec.KernelContext) error {
			grad, x := c.In(0), c.In(1)
			if err := sameShape(c, grad, x); err != nil {
				return err
			}
			all, err := quantizers(c, 2, x, l, perChannel)
			if err != nil {
				return err
			}
			d := exec.Elems[float32](c.OutLike(0, exec.Float32, x))
			toLow, toHigh := exec.Elems[float32](c.OutLike(1, exec.Float32, c.In(2))), exec.Elems[float32](c.OutLike(2, exec.Float32, c.In(3)))
			clear(toLow)
			clear(toHigh)
			g := exec.Elems[float32](grad)
			if len(all) == 1 && !all[0].off {
				toLow[0], toHigh[0] = all[0].gradient(d, g, exec.Elems[float32](x))
				return nil
			}
			k := -1
			for i, v := range exec.Elems[float32](x) {
				if k++; k == len(all) {
					k = 0
				}
				within, below, above := float32(0), float32(0), float32(0) // factors keep NaN and the sign
				switch q := &all[k]; {
				case q.contains(v):
					within = 1
				case v < q.Low:
					below = 1
				case v > q.High:
					above = 1
				}
				d[i] = g[i] * within
				toLow[k] += g[i] * below
				toHigh[k] += g[i] * above
			}
			return nil
		}, nil
	}
}
