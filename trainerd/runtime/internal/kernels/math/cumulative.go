package math

import (
	"math"

	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

func buildCumulative(multiply bool) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		s := scan{multiply: multiply, exclusive: b.Bool("exclusive"), reverse: b.Bool("reverse")}
		switch dt := b.DType("T"); {
		case dt == exec.Complex64:
			return cumulate[complex64](s, nil), nil
		case dt == exec.Complex128:
			return cumulate[complex128](s, nil), nil
		case exec.Halves.Has(dt):
			return exec.Widened("T", exec.WithoutAttrs(cumulate(s, exec.RoundingTo(dt))))(b)
		}
		return exec.ByType(b.DType("T"), cumulateFloats[float32](s), cumulateFloats[float64](s), cumulate[int32](s, nil), cumulate[int64](s, nil))
	}
}

// scan says how elements are folded along an axis.
type scan struct {
	multiply, exclusive, reverse bool
}

// cumulate is the kernel of running sums and products along an axis. Each of them is
// rounded, unless round is nil.
func cumulate[T exec.Arithmetic](s scan, round func(T) T) exec.Kernel {
	return alongAxis(s.reverse, func(d, xs []T, at, step, n int) {
		var acc T
		if s.multiply {
			acc = 1
		}
		for range n {
			before := acc
			if s.multiply {
				acc *= xs[at]
			} else {
				acc += xs[at]
			}
			if round != nil {
				acc = round(acc)
			}
			d[at] = acc
			if s.exclusive {
				d[at] = before
			}
			at += step
		}
	})
}

// cumulateFloats is cumulate, by vectors where the axis is not the last one.
func cumulateFloats[T exec.Float](s scan) exec.Kernel {
	single := cumulate[T](s, nil)
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		a, err := c.Axis(1, len(x.Shape))
		if err != nil {
			return err
		}
		n, inner := x.Shape[a], exec.NumElements(x.Shape[a+1:])
		if inner < 8 || n == 0 {
			return single(c)
		}
		xs, d := exec.Elems[T](x), exec.Elems[T](c.OutLike(0, x.DType, x))
		for o := 0; o < len(xs); o += n * inner {
			cumulateRows(s, d[o:o+n*inner], xs[o:o+n*inner], inner)
		}
		return nil
	}
}

// cumulateRows sets each row of d, of so many elements, to the running sum or product.
func cumulateRows[T exec.Float](s scan, d, x []T, inner int) {
	fold, start := vec.Add[T], T(0)
	if s.multiply {
		fold, start = vec.Mul[T], 1
	}
	at, step := 0, inner
	if s.reverse {
		at, step = len(d)-inner, -inner
	}
	first := d[at : at+inner]
	for i := range first {
		first[i] = start
	}
	from := at // where the row of x is that comes next
	if !s.exclusive {
		fold(first, first, x[at:at+inner])
		from += step
	}
	for before := first; at+step >= 0 && at+step < len(d); {
		at += step
		row := d[at : at+inner]
		fold(row, before, x[from:from+inner])
		before, from = row, from+step
	}
}

func buildCumulativeLogsumexp(b *exec.OpConstruction) (exec.Kernel, error) {
	ex, rev := b.Bool("exclusive"), b.Bool("reverse")
	return exec.ByFloat(b.DType("T"), cumulateLogs[float32](ex, rev), cumulateLogs[float64](ex, rev))
}

// cumulateLogs is the kernel of running sums of numbers whose logarithms are
// given and wanted.
func cumulateLogs[T float32 | float64](exclusive, reverse bool) exec.Kernel {
	return alongAxis(reverse, func(d, xs []T, at, step, n int) {
		acc := T(math.Inf(-1))
		for range n {
			before := acc
			acc = elem.LogSum(acc, xs[at])
			d[at] = acc
			if exclusive {
				d[at] = before
			}
			at += step
		}
	})
}

// alongAxis is the kernel of an op on input 0 that handles each row along the
// axis in input 1 by itself: n elements, the first at, each step after the one
// before.
func alongAxis[T exec.Arithmetic](reverse bool, row func(d, xs []T, at, step, n int)) exec.Kernel {
	return func(c *exec.KernelContext) error {
		x := c.In(0)
		a, err := c.Axis(1, len(x.Shape))
		if err != nil {
			return err
		}
		n, inner := x.Shape[a], exec.NumElements(x.Shape[a+1:])
		xs, d := exec.Elems[T](x), exec.Elems[T](c.OutLike(0, x.DType, x))
		for o := 0; o < len(xs); o += n * inner {
			for k := range inner {
				if reverse {
					row(d, xs, o+k+(n-1)*inner, -inner, n)
				} else {
					row(d, xs, o+k, inner, n)
				}
			}
		}
		return nil
	}
}
