package state

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// The inputs of an optimizer's op, as they have to be for variables of every type.

// updateInputs are the variables, with elements as they are stored, and the scalars, as they are computed with.
type updateInputs[S exec.Element, T exec.Float] struct {
	vars    [maxOperands][]S
	scalars [maxOperands]T
	n       int // scalars
	first   *exec.Variable
}

// load collects the variables of the type and the scalars; inputs grad and rows are neither.
func (u *updateInputs[S, T]) load(c *exec.KernelContext, dt tfpb.DataType, vars, grad, rows int, widen func(S) T) error {
	for i := range vars {
		v, err := updatedVariable(c, i, dt, u.first)
		if err != nil {
			return err
		}
		if i == 0 {
			u.first = v
		}
		u.vars[i] = exec.Elems[S](&v.Value)
	}
	for i := vars; i < c.NumInputs(); i++ {
		if i == grad || i == rows {
			continue
		}
		t, err := ruleScalar(c, i)
		if err != nil {
			return err
		}
		if t.DType == exec.Int64 {
			u.scalars[u.n] = T(exec.Elems[int64](t)[0])
		} else {
			u.scalars[u.n] = widen(exec.Elems[S](t)[0])
		}
		u.n++
	}
	return nil
}

// same is the widening of a type that is computed with as it is stored.
func same[T exec.Float](v T) T { return v }

// updatedVariable returns variable i of an update. first is the model's, nil for it
// itself; its slots have its shape.
func updatedVariable(c *exec.KernelContext, i int, dt tfpb.DataType, first *exec.Variable) (*exec.Variable, error) {
	v, err := c.TypedVariable(i, dt)
	if err != nil {
		return nil, err
	}
	if first != nil && !exec.SameShape(v.Value.Shape, first.Value.Shape) {
		return nil, c.Invalid("slot %q has the shape %s, variable %q %s", v.Name, exec.ShapeString(v.Value.Shape), first.Name, exec.ShapeString(first.Value.Shape))
	}
	return v, nil
}

// ruleScalar returns input i of an update, which must be a scalar.
func ruleScalar(c *exec.KernelContext, i int) (*exec.Tensor, error) {
	t := c.In(i)
	if t.NumElements() != 1 {
		return nil, c.Invalid("input %d must be a scalar, not %s", i, t.Describe())
	}
	return t, nil
}

// checkGradient compares a dense gradient with the variable that it updates.
func checkGradient(c *exec.KernelContext, v *exec.Variable, g *exec.Tensor) error {
	if !exec.SameShape(g.Shape, v.Value.Shape) {
		return c.Invalid("the gradient has the shape %s, variable %q %s", exec.ShapeString(g.Shape), v.Name, exec.ShapeString(v.Value.Shape))
	}
	return nil
}

// checkRows compares a gradient of the rows that idx names with the variable that it
// updates, and returns the elements of a row.
func checkRows(c *exec.KernelContext, v *exec.Variable, g, idx *exec.Tensor) (row int, err error) {
	shape := v.Value.Shape
	if len(shape) == 0 || len(idx.Shape) != 1 || len(g.Shape) != len(shape) || g.Shape[0] != idx.Shape[0] || !exec.SameShape(g.Shape[1:], shape[1:]) {
		return 0, c.Invalid("gradient %s at indices %s does not fit variable %q of shape %s", g.Describe(), idx.Describe(), v.Name, exec.ShapeString(shape))
	}
	return exec.NumElements(shape[1:]), nil
}

// rowAt returns the row of v that element k of idx names.
func rowAt(c *exec.KernelContext, v *exec.Variable, idx *exec.Tensor, k int) (int, error) {
	i, n := idx.IntAt(k), v.Value.Shape[0]
	if i < 0 || i >= n {
		return 0, c.Invalid("index %d is %d, outside [0, %d)", k, i, n)
	}
	return i, nil
}
