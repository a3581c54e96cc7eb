package random

import (
	"math"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/philox"
)

// Samplers of the classes that sampled losses compare with.
var candidateSamplerOps = exec.OpTable{
	"UniformCandidateSampler":    {Flags: exec.Stateful | exec.WritesState, Build: buildSampler(uniformClasses)},
	"LogUniformCandidateSampler": {Flags: exec.Stateful | exec.WritesState, Build: buildSampler(logUniformClasses)},

	"ComputeAccidentalHits": {Build: buildAccidentalHits},
}

// classes is a distribution of the classes below n.
type classes struct {
	draw        func(w *philox.Words) int64
	probability func(class float64) float64
	learn       func(seen []int64) // nil for one that does not change
}

func uniformClasses(_ *exec.OpConstruction, n int) classes {
	return classes{
		draw:        func(w *philox.Words) int64 { return int64(w.Uint64n(uint64(n))) },
		probability: func(float64) float64 { return 1 / float64(n) },
	}
}

// logUniformClasses is Zipf's law: small numbers stand for frequent classes.
func logUniformClasses(_ *exec.OpConstruction, n int) classes {
	span := math.Log1p(float64(n))
	return classes{
		draw:        func(w *philox.Words) int64 { return (int64(math.Exp(w.Float64()*span)) - 1) % int64(n) },
		probability: func(class float64) float64 { return math.Log((class+2)/(class+1)) / span },
	}
}

func buildSampler(of func(b *exec.OpConstruction, n int) classes) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		n, want, unique := b.Int("range_max"), b.Int("num_sampled"), b.Bool("unique")
		if n < 1 || want < 1 || want > 1<<24 || unique && want > n {
			b.Fail("%d samples of %d classes", want, n)
			return nil, nil
		}
		dist, st := of(b, n), b.RandomStream()
		if b.Err() != nil {
			return nil, b.Err()
		}
		return func(c *exec.KernelContext) error {
			x := c.In(0)
			g := c.Draw(st).ReserveWords(2048 * want)
			words := philox.NewWords(&g)
			sampled := c.Out(0, exec.Int64, want)
			tries := drawClasses(&dist, exec.Elems[int64](sampled), words, unique)
			expectedCounts(c, 1, &dist, x, want, tries)
			expectedCounts(c, 2, &dist, sampled, want, tries)
			if dist.learn != nil {
				dist.learn(exec.Elems[int64](x))
			}
			return nil
		}, nil
	}
}

// drawClasses fills d and returns the number of draws that it took.
func drawClasses(dist *classes, d []int64, words *philox.Words, unique bool) int {
	if !unique {
		for i := range d {
			d[i] = dist.draw(words)
		}
		return len(d)
	}
	used := make(map[int64]bool, len(d))
	tries := 0
	for i := 0; i < len(d); {
		tries++
		if v := dist.draw(words); !used[v] {
			used[v] = true
			d[i] = v
			i++
		}
	}
	return tries
}

// expectedCounts makes output i the number of times that each class is expected
// among the samples.
func expectedCounts(c *exec.KernelContext, i int, dist *classes, x *exec.Tensor, samples, tries int) {
	d := exec.Elems[float32](c.OutLike(i, exec.Float32, x))
	for k, class := range exec.Elems[int64](x) {
		p := float64(float32(dist.probability(float64(class))))
		if tries == samples {
			d[k] = float32(p * float64(samples))
		} else {
			all := float32(tries) * float32(math.Log1p(-p)) // in single precision, as TensorFlow's
			d[k] = float32(-math.Expm1(float64(all)))
		}
	}
}

// buildAccidentalHits builds the op that finds the sampled classes that are
// true ones, so that a loss can leave them out.
func buildAccidentalHits(b *exec.OpConstruction) (exec.Kernel, error) {
	want := b.Int("num_true")
	return func(c *exec.KernelContext) error {
		labels, sampled := c.In(0), c.In(1)
		if len(labels.Shape) != 2 || labels.Shape[1] != want || len(sampled.Shape) != 1 {
			return c.Invalid("%d true classes from %s, among the samples %s", want, labels.Describe(), sampled.Describe())
		}
		at := make(map[int64]int, sampled.NumElements())
		for i, class := range exec.Elems[int64](sampled) {
			at[class] = i
		}
		var rows, ids []int
		for i, class := range exec.Elems[int64](labels) {
			if k, ok := at[class]; ok {
				rows, ids = append(rows, i/want), append(ids, k)
			}
		}
		d, e, w := c.Out(0, exec.Int32, len(rows)), c.Out(1, exec.Int64, len(rows)), exec.Elems[float32](c.Out(2, exec.Float32, len(rows)))
		for i := range rows {
			exec.SetInt(d, i, rows[i])
			exec.SetInt(e, i, ids[i])
			w[i] = -3.4028234663852886e38 // so that the exponential is zero
		}
		return nil
	}, nil
}
