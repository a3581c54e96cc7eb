package array

import (
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/internal/vec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// selectRows is the older select: the condition has the shape of the values,
// or is a scalar, or picks whole rows.
func selectRows[T exec.Element](c *exec.KernelContext) error {
	cond, x, y := c.In(0), c.In(1), c.In(2)
	if !exec.SameShape(x.Shape, y.Shape) {
		return c.Invalid("the values have the shapes %s and %s", exec.ShapeString(x.Shape), exec.ShapeString(y.Shape))
	}
	conds := exec.Elems[bool](cond)
	row := 1
	switch {
	case exec.SameShape(cond.Shape, x.Shape):
	case len(cond.Shape) == 0:
		row = x.NumElements()
	case len(cond.Shape) == 1 && len(x.Shape) > 0 && cond.Shape[0] == x.Shape[0]:
		row = exec.NumElements(x.Shape[1:])
	default:
		return c.Invalid("the condition has the shape %s, the values %s", exec.ShapeString(cond.Shape), exec.ShapeString(x.Shape))
	}
	xs, ys, d := exec.Elems[T](x), exec.Elems[T](y), exec.Elems[T](c.OutLike(0, x.DType, x))
	if row == 1 {
		picks[T]{d: d, cond: conds, x: xs, y: ys}.do(c)
		return nil
	}
	for o := 0; o < len(d); o += row {
		from := ys
		if conds[o/row] {
			from = xs
		}
		copy(d[o:o+row], from[o:o+row])
	}
	return nil
}

// picks chooses between the elements of x and of y, or of x and v where y is nil. It is
// kept in the frame, so that a step does not allocate it.
type picks[T exec.Element] struct {
	cond    []bool
	want    bool // where cond is so, x is taken
	d, x, y []T
	v       T
}

func (w picks[T]) do(c *exec.KernelContext) {
	kept := exec.InFrame[picks[T]](c)
	*kept = w
	if len(w.d) < elem.ParallelElements {
		kept.Part(0, 1)
	} else {
		parallel.Run(exec.MaxParts, kept)
	}
	*kept = picks[T]{}
}

// Part implements [parallel.Job].
func (w *picks[T]) Part(i, n int) {
	from, to := parallel.Span(len(w.d), elem.SpreadStep, i, n)
	if w.y == nil {
		pickOr(w.d[from:to], w.cond[from:to], w.want, w.x[from:to], w.v)
		return
	}
	pick(w.d[from:to], w.cond[from:to], w.x[from:to], w.y[from:to])
}

// pick takes each element from x where the condition holds, else from y. It has
// no branch: conditions of dropout are random.
func pick[T exec.Element](d []T, cond []bool, x, y []T) {
	if words, ok := any(d).([]uint32); ok {
		vec.Choose(words, cond, any(x).([]uint32), any(y).([]uint32))
		return
	}
	cond, x, y = cond[:len(d)], x[:len(d)], y[:len(d)]
	for i := range d {
		from, v := x[i], y[i]
		if cond[i] {
			v = from
		}
		d[i] = v
	}
}

// pickOr takes each element from x where the condition is as wanted, else v.
func pickOr[T exec.Element](d []T, cond []bool, want bool, x []T, v T) {
	if words, ok := any(d).([]uint32); ok {
		vec.ChooseOr(words, cond, want, any(x).([]uint32), any(v).(uint32))
		return
	}
	cond, x = cond[:len(d)], x[:len(d)]
	for i := range d {
		from, other := x[i], v
		if cond[i] == want {
			other = from
		}
		d[i] = other
	}
}

// selectV2 broadcasts its three inputs against each other.
func selectV2[T exec.Element](c *exec.KernelContext) error {
	cond, x, y := c.In(0), c.In(1), c.In(2)
	conds, xs, ys := exec.Elems[bool](cond), exec.Elems[T](x), exec.Elems[T](y)
	fits := func(t *exec.Tensor) bool { return exec.SameShape(t.Shape, cond.Shape) }
	switch {
	case fits(x) && fits(y):
		picks[T]{d: exec.Elems[T](c.OutOver(0, 1, 2)), cond: conds, x: xs, y: ys}.do(c)
	case fits(x) && len(y.Shape) == 0:
		picks[T]{d: exec.Elems[T](c.OutOver(0, 1)), cond: conds, want: true, x: xs, v: ys[0]}.do(c)
	case len(x.Shape) == 0 && fits(y):
		picks[T]{d: exec.Elems[T](c.OutOver(0, 2)), cond: conds, x: ys, v: xs[0]}.do(c)
	default:
		return selectBroadcast(c, conds, xs, ys)
	}
	return nil
}

func selectBroadcast[T exec.Element](c *exec.KernelContext, conds []bool, xs, ys []T) error {
	cond, x, y := c.In(0), c.In(1), c.In(2)
	var values, all elem.Broadcast
	if err := values.Init(x.Shape, y.Shape); err != nil {
		return c.Invalid("%v", err)
	}
	if err := all.Init(cond.Shape, values.Shape()); err != nil {
		return c.Invalid("the condition: %v", err)
	}
	d := exec.Elems[T](c.Out(0, x.DType, all.Shape()...))
	picked := exec.Scratch[bool](c, exec.ScratchA, len(d))
	elem.Spread(c, picked, conds, all.Shape(), cond.Shape)
	elem.Spread(c, d, ys, all.Shape(), y.Shape)
	var bx elem.Broadcast
	if err := bx.Init(all.Shape(), x.Shape); err != nil {
		return c.Invalid("%v", err)
	}
	bx.Pairs(func(o, _, j int) {
		if picked[o] {
			d[o] = xs[j]
		}
	})
	return nil
}
