package array

import (
	"slices"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func roll(c *exec.KernelContext) error {
	x := c.In(0)
	shifts, axes := c.IntsOf(0, c.In(1)), c.IntsOf(1, c.In(2))
	if !exec.SameShape(c.In(1).Shape, c.In(2).Shape) || len(c.In(1).Shape) > 1 || len(x.Shape) == 0 {
		return c.Invalid("shifts %s along axes %s of %s", exec.ShapeString(shifts), exec.ShapeString(axes), x.Describe())
	}
	total := elem.Zeros(c, 2, len(x.Shape))
	for i, a := range axes {
		if a < -len(x.Shape) || a >= len(x.Shape) {
			return c.Invalid("axis %d is outside %s", a, x.Describe())
		}
		if a < 0 {
			a += len(x.Shape)
		}
		if n := x.Shape[a]; n > 0 {
			total[a] = ((total[a]+shifts[i]%n)%n + n) % n
		}
	}
	d := c.OutLike(0, x.DType, x)
	rollRuns(d, x, x.Shape, total, 0, 0, x.NumElements())
	return nil
}

// rollRuns rolls n elements, those of the dimensions of shape, by so many positions along each
// of them. What follows the last one that is rolled moves in two runs.
func rollRuns(d, x *exec.Tensor, shape, by []int, to, from, n int) {
	if n == 0 {
		return
	}
	step := n / shape[0]
	start := by[0] * step // of the first position in the result
	if last := !slices.ContainsFunc(by[1:], func(n int) bool { return n != 0 }); last {
		exec.CopyElems(d, to+start, x, from, n-start)
		exec.CopyElems(d, to, x, from+n-start, start)
		return
	}
	for i := range shape[0] {
		rollRuns(d, x, shape[1:], by[1:], to+(start+i*step)%n, from+i*step, step)
	}
}
