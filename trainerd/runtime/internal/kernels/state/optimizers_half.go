package state

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// halfChunk is how many elements of 16 bits are updated at a time.
const halfChunk = 256

// halfOperands are what a rule is applied to on variables of 16 bits: parts of them
// are widened, updated in float32 and rounded once.
type halfOperands struct {
	vars    [maxOperands][]uint16
	scalars [maxOperands]float32
	n       int // scalars
	first   *exec.Variable

	widen  func(uint16) float32
	narrow func(float32) uint16
	wide   [maxOperands + 1][halfChunk]float32 // of the variables, and of the gradient
}

// applyHalfRule is the kernel of an optimizer on variables of 16 bits; see [applyRule].
func applyHalfRule(dt tfpb.DataType, vars, grad, rows int, f rule[float32]) exec.Kernel {
	narrow := exec.ToHalf
	if dt == exec.Bfloat16 {
		narrow = exec.ToBfloat16
	}
	widen := exec.Widener(dt)
	return func(c *exec.KernelContext) error {
		o := exec.InFrame[halfOperands](c)
		o.n, o.widen, o.narrow = 0, widen, narrow
		if err := o.load(c, dt, vars, grad, rows); err != nil {
			return err
		}
		g := c.In(grad)
		if rows > 0 {
			return o.applyRows(c, vars, g, c.In(rows), f)
		}
		if !exec.SameShape(g.Shape, o.first.Value.Shape) {
			return c.Invalid("the gradient has the shape %s, variable %q %s", exec.ShapeString(g.Shape), o.first.Name, exec.ShapeString(o.first.Value.Shape))
		}
		o.apply(f, vars, 0, exec.Elems[uint16](g))
		return nil
	}
}

// load collects the variables and the scalars; inputs grad and rows are neither.
func (o *halfOperands) load(c *exec.KernelContext, dt tfpb.DataType, vars, grad, rows int) error {
	for i := range vars {
		v, err := c.TypedVariable(i, dt)
		if err != nil {
			return err
		}
		if i == 0 {
			o.first = v
		}
		if !exec.SameShape(v.Value.Shape, o.first.Value.Shape) {
			return c.Invalid("slot %q has the shape %s, variable %q %s", v.Name, exec.ShapeString(v.Value.Shape), o.first.Name, exec.ShapeString(o.first.Value.Shape))
		}
		o.vars[i] = exec.Elems[uint16](&v.Value)
	}
	for i := vars; i < c.NumInputs(); i++ {
		if i == grad || i == rows {
			continue
		}
		t := c.In(i)
		if t.NumElements() != 1 {
			return c.Invalid("input %d must be a scalar, not %s", i, t.Describe())
		}
		if t.DType == exec.Int64 {
			o.scalars[o.n] = float32(exec.Elems[int64](t)[0])
		} else {
			o.scalars[o.n] = o.widen(exec.Elems[uint16](t)[0])
		}
		o.n++
	}
	return nil
}

// apply runs a rule on the elements of the variables from one on that belong to grad.
func (o *halfOperands) apply(f rule[float32], vars, from int, grad []uint16) {
	var parts [maxOperands][]float32
	for at := 0; at < len(grad); at += halfChunk {
		n := min(halfChunk, len(grad)-at)
		for k := range vars {
			parts[k] = o.wide[k][:n]
			for i, v := range o.vars[k][from+at : from+at+n] {
				parts[k][i] = o.widen(v)
			}
		}
		g := o.wide[maxOperands][:n]
		for i, v := range grad[at : at+n] {
			g[i] = o.widen(v)
		}
		f(parts[:vars], o.scalars[:o.n], g)
		for k := range vars {
			for i, v := range parts[k] {
				o.vars[k][from+at+i] = o.narrow(v)
			}
		}
	}
}

// applyRows applies a rule to the rows of the variables that idx names.
func (o *halfOperands) applyRows(c *exec.KernelContext, vars int, g, idx *exec.Tensor, f rule[float32]) error {
	shape := o.first.Value.Shape
	if len(shape) == 0 || len(idx.Shape) != 1 || len(g.Shape) != len(shape) || g.Shape[0] != idx.Shape[0] || !exec.SameShape(g.Shape[1:], shape[1:]) {
		return c.Invalid("gradient %s at indices %s does not fit variable %q of shape %s", g.Describe(), idx.Describe(), o.first.Name, exec.ShapeString(shape))
	}
	n, row := shape[0], exec.NumElements(shape[1:])
	values := exec.Elems[uint16](g)
	for k := range idx.Shape[0] {
		i := idx.IntAt(k)
		if i < 0 || i >= n {
			return c.Invalid("index %d is %d, outside [0, %d)", k, i, n)
		}
		o.apply(f, vars, i*row, values[k*row:(k+1)*row])
	}
	return nil
}
