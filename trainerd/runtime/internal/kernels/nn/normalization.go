package nn

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var normalizationOps = exec.OpTable{
	"FusedBatchNorm":       {Types: exec.SetOf(exec.Float32), Build: buildBatchNorm(5)},
	"FusedBatchNormV2":     {Types: exec.SetOf(exec.Float32), Build: buildBatchNorm(5)},
	"FusedBatchNormV3":     {Types: exec.SetOf(exec.Float32), Build: buildBatchNorm(6)},
	"FusedBatchNormGrad":   {Types: exec.SetOf(exec.Float32), Build: buildBatchNormGrad},
	"FusedBatchNormGradV2": {Types: exec.SetOf(exec.Float32), Build: buildBatchNormGrad},
	"FusedBatchNormGradV3": {Types: exec.SetOf(exec.Float32), Build: buildBatchNormGrad},
	"LRN":                  {Build: buildLRN(lrn)},
	"LRNGrad":              {Build: buildLRN(lrnGrad)},
}

// channels sees images as [outer, n, inner], n being the channels.
type channels struct{ outer, n, inner int }

// each calls f with runs of elements of one channel.
func (s channels) each(f func(ch, lo, hi int)) {
	for o := range s.outer * s.n {
		f(o%s.n, o*s.inner, (o+1)*s.inner)
	}
}

func (s channels) perChannel() int { return s.outer * s.inner }

func channelsOf(c *exec.KernelContext, x *exec.Tensor, first bool) (channels, error) {
	if len(x.Shape) != 4 {
		return channels{}, c.Invalid("images must have four dimensions, not %s", x.Describe())
	}
	outer, n, inner, err := biasLayout(c, x, first)
	return channels{outer, n, inner}, err
}

// batchNorm holds the attributes of batch normalisation.
type batchNorm struct {
	epsilon, factor float32
	training, first bool
	outputs         int
}

func newBatchNorm(b *exec.OpConstruction) batchNorm {
	return batchNorm{
		epsilon: float32(b.Float("epsilon")), factor: float32(b.FloatOr("exponential_avg_factor", 1)),
		training: b.Bool("is_training"), first: b.String("data_format") == "NCHW",
	}
}

func buildBatchNorm(outputs int) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		bn := newBatchNorm(b)
		bn.outputs = outputs
		return bn.forward, nil
	}
}

// vectors returns inputs first..last, which must be vectors of n.
func vectors(c *exec.KernelContext, first, n int, into ...*[]float32) error {
	for i, p := range into {
		t := c.In(first + i)
		if len(t.Shape) != 1 || t.Shape[0] != n {
			return c.Invalid("input %d must be a vector of %d, not %s", first+i, n, t.Describe())
		}
		*p = exec.Elems[float32](t)
	}
	return nil
}

func (bn *batchNorm) forward(c *exec.KernelContext) error {
	x := c.In(0)
	s, err := channelsOf(c, x, bn.first)
	if err != nil {
		return err
	}
	var scale, offset, oldMean, oldVar []float32
	if err := vectors(c, 1, s.n, &scale, &offset); err != nil {
		return err
	}
	if !bn.training || bn.factor != 1 {
		if err := vectors(c, 3, s.n, &oldMean, &oldVar); err != nil {
			return err
		}
	}
	runMean, runVar := exec.Elems[float32](c.Out(1, exec.Float32, s.n)), exec.Elems[float32](c.Out(2, exec.Float32, s.n))
	mean, variance := exec.Elems[float32](c.Out(3, exec.Float32, s.n)), exec.Elems[float32](c.Out(4, exec.Float32, s.n))
	if bn.outputs == 6 {
		elem.Zero(c.Out(5, exec.Float32))
	}
	if x.NumElements() == 0 {
		return bn.nothing(c, x)
	}
	if bn.training {
		moments(c, s, exec.Elems[float32](x), mean, variance)
		bn.average(s, mean, variance, runMean, runVar, oldMean, oldVar)
	} else {
		for _, to := range [][]float32{mean, runMean} {
			copy(to, oldMean)
		}
		for _, to := range [][]float32{variance, runVar} {
			copy(to, oldVar)
		}
	}
	bn.normalize(c, s, x, scale, offset, mean, variance)
	return nil
}

// nothing makes the results for no images: there are no moments.
func (bn *batchNorm) nothing(c *exec.KernelContext, x *exec.Tensor) error {
	c.OutLike(0, x.DType, x)
	for i := 1; i < 5; i++ {
		d := exec.Elems[float32](c.Slot(i))
		for j := range d {
			d[j] = float32(math.NaN())
		}
	}
	return nil
}

// average sets the running moments: those of the batch, the variance without
// its bias, blended with the old ones unless the factor is 1.
func (bn *batchNorm) average(s channels, mean, variance, runMean, runVar, oldMean, oldVar []float32) {
	unbias := float32(s.perChannel()) / float32(max(1, s.perChannel()-1))
	for i := range mean {
		runMean[i], runVar[i] = mean[i], variance[i]*unbias
		if bn.factor != 1 {
			runMean[i] = (1-bn.factor)*oldMean[i] + bn.factor*runMean[i]
			runVar[i] = (1-bn.factor)*oldVar[i] + bn.factor*runVar[i]
		}
	}
}

// normalize sets output 0.
func (bn *batchNorm) normalize(c *exec.KernelContext, s channels, x *exec.Tensor, scale, offset, mean, variance []float32) {
	xs, d := exec.Elems[float32](x), exec.Elems[float32](c.OutLike(0, x.DType, x))
	if s.inner == 1 {
		w := newNormWork(c, s, xs)
		factor := w.lanes()
		w.d, w.phase, w.factor = d, normalizing, factor
		bn.factors(factor, scale, variance)
		repeatLanes(factor, s.n)
		w.mean, w.offset = w.spread(mean), w.spread(offset)
		w.do()
		*w = normWork{}
		return
	}
	factor := exec.Scratch[float32](c, exec.ScratchA, s.n)
	bn.factors(factor, scale, variance)
	s.each(func(ch, lo, hi int) {
		for i := lo; i < hi; i++ {
			d[i] = (xs[i]-mean[ch])*factor[ch] + offset[ch]
		}
	})
}

// factors sets what each channel is multiplied by.
func (bn *batchNorm) factors(factor, scale, variance []float32) {
	for i, v := range variance {
		factor[i] = scale[i] / elem.Sqrt(v+bn.epsilon)
	}
}

// moments computes the mean and the biased variance of each channel.
func moments(c *exec.KernelContext, s channels, xs, mean, variance []float32) {
	n := float64(max(1, s.perChannel()))
	if s.inner == 1 {
		w := newNormWork(c, s, xs)
		shift := w.sample(s)
		w.phase, w.mean = summing, w.spread(shift)
		w.do()
		for i, v := range shift {
			m := w.sums[i] / n
			mean[i] = float32(float64(v) + m)
			variance[i] = float32(max(0, w.others[i]/n-m*m))
		}
		return
	}
	sums, squares := exec.Scratch[float64](c, exec.ScratchA, s.n), exec.Scratch[float64](c, exec.ScratchB, s.n)
	clear(sums)
	clear(squares)
	s.each(func(ch, lo, hi int) { sums[ch] += vec.Sum(xs[lo:hi]) })
	for i := range sums {
		sums[i] /= n
		mean[i] = float32(sums[i])
	}
	s.each(func(ch, lo, hi int) {
		for _, v := range xs[lo:hi] {
			d := float64(v) - sums[ch]
			squares[ch] += d * d
		}
	})
	for i, v := range squares {
		variance[i] = float32(v / n)
	}
}

func buildBatchNormGrad(b *exec.OpConstruction) (exec.Kernel, error) {
	bn := newBatchNorm(b)
	return bn.backward, nil
}

func (bn *batchNorm) backward(c *exec.KernelContext) error {
	grad, x := c.In(0), c.In(1)
	s, err := channelsOf(c, x, bn.first)
	if err != nil {
		return err
	}
	if !exec.SameShape(grad.Shape, x.Shape) {
		return c.Invalid("the gradient has the shape %s, the images %s", exec.ShapeString(grad.Shape), exec.ShapeString(x.Shape))
	}
	var scale, mean, variance []float32
	if err := vectors(c, 2, s.n, &scale, &mean, &variance); err != nil {
		return err
	}
	gs, xs := exec.Elems[float32](grad), exec.Elems[float32](x)
	dx := exec.Elems[float32](c.OutLike(0, x.DType, x))
	dscale, doffset := exec.Elems[float32](c.Out(1, exec.Float32, s.n)), exec.Elems[float32](c.Out(2, exec.Float32, s.n))
	c.Out(3, exec.Float32, 0)
	c.Out(4, exec.Float32, 0)
	inv := exec.Scratch[float32](c, exec.ScratchD, s.n)
	for i, v := range variance {
		inv[i] = 1 / elem.Sqrt(v+bn.epsilon)
	}
	if s.inner == 1 && len(xs) > 0 {
		bn.backwardRows(c, s, gs, xs, dx, scale, mean, inv, dscale, doffset)
		return nil
	}
	bn.backwardPlanes(c, s, gs, xs, dx, scale, mean, inv, dscale, doffset)
	return nil
}

// backwardRows is the gradient for images whose channels come last.
func (bn *batchNorm) backwardRows(c *exec.KernelContext, s channels, gs, xs, dx, scale, mean, inv, dscale, doffset []float32) {
	w := newNormWork(c, s, xs)
	w.g, w.d, w.phase, w.mean = gs, dx, summingGrad, w.spread(mean)
	w.do()
	n := float64(max(1, s.perChannel()))
	w.factor, w.offset, w.slope = w.lanes(), w.lanes(), w.lanes()
	for i, f := range inv {
		doffset[i], dscale[i] = float32(w.sums[i]), float32(w.others[i])*f
		w.factor[i] = scale[i] * f
		w.offset[i], w.slope[i] = 0, 0
		if bn.training {
			w.offset[i], w.slope[i] = float32(w.sums[i]/n), float32(w.others[i]/n)*f*f
		}
	}
	for _, l := range [][]float32{w.factor, w.offset, w.slope} {
		repeatLanes(l, s.n)
	}
	w.phase = normalizingGrad
	w.do()
	*w = normWork{}
}

// backwardPlanes is the gradient for images whose channels come first.
func (bn *batchNorm) backwardPlanes(c *exec.KernelContext, s channels, gs, xs, dx, scale, mean, inv, dscale, doffset []float32) {
	sums, dots := exec.Scratch[float64](c, exec.ScratchA, s.n), exec.Scratch[float64](c, exec.ScratchB, s.n)
	clear(sums)
	clear(dots)
	s.each(func(ch, lo, hi int) {
		for i := lo; i < hi; i++ {
			sums[ch] += float64(gs[i])
			dots[ch] += float64(gs[i]) * float64(xs[i]-mean[ch])
		}
	})
	n := float64(max(1, s.perChannel()))
	for i, f := range inv {
		doffset[i], dscale[i] = float32(sums[i]), float32(dots[i])*f
	}
	s.each(func(ch, lo, hi int) {
		f, sub, slope := scale[ch]*inv[ch], float32(sums[ch]/n), float32(dots[ch]/n)*inv[ch]*inv[ch]
		if !bn.training {
			sub, slope = 0, 0
		}
		for i := lo; i < hi; i++ {
			dx[i] = f * (gs[i] - sub - (xs[i]-mean[ch])*slope)
		}
	})
}
