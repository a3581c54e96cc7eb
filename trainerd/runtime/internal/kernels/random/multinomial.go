package random

import (
	"math"
	"sort"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

var multinomialOps = exec.OpTable{
	"Multinomial":              {Types: exec.Floats, Flags: exec.Stateful | exec.WritesState, Build: buildMultinomial},
	"StatelessMultinomial":     {Types: exec.Floats, Build: buildStatelessMultinomial},
	"StatelessRandomUniform":   {Build: buildStateless(uniform)},
	"StatelessRandomNormal":    {Build: exec.Widened("dtype", buildStateless(normal))},
	"StatelessTruncatedNormal": {Build: exec.Widened("dtype", buildStateless(truncatedNormal))},
}

// buildMultinomial builds the op that draws classes with the probabilities
// that rows of logits give.
func buildMultinomial(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("output_dtype")
	st := b.RandomStream()
	return func(c *exec.KernelContext) error {
		return multinomial(c, dt, func(words int) (philox.Generator, error) { return c.Draw(st).Reserve(words), nil })
	}, nil
}

// buildStatelessMultinomial builds the same with a stream that begins at a seed.
func buildStatelessMultinomial(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("output_dtype")
	return func(c *exec.KernelContext) error {
		return multinomial(c, dt, func(int) (philox.Generator, error) { return seededBy(c, c.In(2)) })
	}, nil
}

// multinomial draws with a generator that it asks for, with the number of words that it
// takes from it.
func multinomial(c *exec.KernelContext, dt tfpb.DataType, generator func(words int) (philox.Generator, error)) error {
	x := c.In(0)
	n, err := c.IntScalar(1, "the number of samples")
	if err != nil {
		return err
	}
	if len(x.Shape) != 2 || x.Shape[1] == 0 || n < 0 {
		return c.Invalid("%d samples from logits %s", n, x.Describe())
	}
	rows, classes := x.Shape[0], x.Shape[1]
	d := c.Out(0, dt, rows, n)
	gen, err := generator(rows * ((n + 3) / 4 * 4) * 2)
	if err != nil {
		return err
	}
	words := philox.NewWords(&gen)
	cdf := exec.Scratch[float64](c, exec.ScratchA, classes)
	for r := range rows {
		cumulative(cdf, x, r*classes)
		sample(d, r*n, n, cdf, words)
	}
	return nil
}

// cumulative sets cdf to the running sum of exp(logit - max).
func cumulative(cdf []float64, x *exec.Tensor, at int) {
	top := math.Inf(-1)
	for j := range cdf {
		if v := x.FloatAt(at + j); v-v == 0 {
			top = max(top, v)
		}
	}
	total := 0.0
	for j := range cdf {
		if v := x.FloatAt(at + j); v-v == 0 {
			total += math.Exp(v - top)
		}
		cdf[j] = total
	}
}

// sample draws n classes.
func sample(d *exec.Tensor, at, n int, cdf []float64, words *philox.Words) {
	total := cdf[len(cdf)-1]
	for i := range n {
		x0 := words.Next()
		u := philox.Float64(x0, words.Next()) * total
		exec.SetInt(d, at+i, sort.Search(len(cdf)-1, func(k int) bool { return cdf[k] > u }))
	}
}

// buildStateless builds a random op whose stream begins at a seed given as
// input. The key and the counter are the seed encrypted under a fixed key.
func buildStateless(fill distribution) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		dt := b.DType("dtype")
		if !(exec.Floats | exec.Halves).Has(dt) {
			b.Fail("no kernel for dtype=%s", exec.TypeName(dt))
		}
		return func(c *exec.KernelContext) error {
			g, err := seeded(c)
			if err != nil {
				return err
			}
			t, err := elem.OutShaped(c, 0, dt)
			if err != nil {
				return err
			}
			return fillBy(c, g, t, fill)
		}, nil
	}
}
