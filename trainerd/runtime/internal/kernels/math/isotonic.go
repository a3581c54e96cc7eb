package math

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The regression that soft sorting and ranking take their gradients through.
var isotonicOps = exec.OpTable{
	"IsotonicRegression": {Types: exec.RealTypes, Build: buildIsotonic},
}

// buildIsotonic builds the op that replaces each row by the closest one that does not
// increase, and numbers its runs of equal values.
func buildIsotonic(b *exec.OpConstruction) (exec.Kernel, error) {
	as := b.DType("output_dtype")
	if !exec.Floats.Has(as) {
		b.Fail("no kernel for output_dtype=%s", exec.TypeName(as))
	}
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		if len(x.Shape) != 2 {
			return c.Invalid("%s is not a batch of rows", x.Describe())
		}
		d, runs := c.OutLike(0, as, x), c.OutLike(1, exec.Int32, x)
		n := x.Shape[1]
		row := make([]float64, n)
		for k := range x.Shape[0] {
			for i := range row {
				row[i] = elem.RealAt(x, k*n+i)
			}
			for run, p := range pooled(row) {
				for i := p.from; i < p.to; i++ {
					elem.SetNumber(d, k*n+i, p.sum/float64(p.to-p.from))
					exec.SetInt(runs, k*n+i, run)
				}
			}
		}
		return nil
	}, nil
}

// pool is a run of neighbours that get their mean.
type pool struct {
	from, to int
	sum      float64
}

func (p pool) mean() float64 { return p.sum / float64(p.to-p.from) }

// pooled joins neighbours until the means descend.
func pooled(row []float64) []pool {
	var list []pool
	for i, v := range row {
		last := pool{i, i + 1, v}
		for len(list) > 0 && list[len(list)-1].mean() <= last.mean() {
			before := list[len(list)-1]
			last = pool{before.from, last.to, before.sum + last.sum}
			list = list[:len(list)-1]
		}
		list = append(list, last)
	}
	return list
}
