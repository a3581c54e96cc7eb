package array

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// Ops that change rows of a tensor where it is, as loops that decode do. TensorFlow changes
// the input itself, whatever else needs it and in no order that a graph could say; here
// only the output has the new rows. Memory is copied only if something else needs the input.
var inplaceOps = exec.OpTable{
	"InplaceUpdate": {Types: elem.FoldTypes("Update"), Build: buildInplace("Update")},
	"InplaceAdd":    {Types: elem.FoldTypes("Add"), Build: buildInplace("Add")},
	"InplaceSub":    {Types: elem.FoldTypes("Sub"), Build: buildInplace("Sub")},
	"DeepCopy":      {Types: exec.ValueTypes, Build: exec.WithoutAttrs(deepCopy)},
}

func buildInplace(op string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		f := elem.FoldOf(op, b.DType("T"))
		return func(c *exec.KernelContext) error {
			x, rows, v := c.In(0), c.In(1), c.In(2)
			if err := checkRows(c, x, rows, v); err != nil {
				return err
			}
			d := overwritten(c)
			if x.NumElements() == 0 {
				return nil
			}
			n := x.Shape[0]
			row := x.NumElements() / n
			at := c.IntsOf(0, rows)
			for k, i := range at {
				at[k] = (i%n + n) % n * row
			}
			f(d, at, v, row, row)
			return nil
		}, nil
	}
}

// checkRows checks that v has a row like those of x for each number of a row.
func checkRows(c *exec.KernelContext, x, rows, v *exec.Tensor) error {
	if len(rows.Shape) != 1 {
		return c.Invalid("i must be a vector, not %s", rows.Describe())
	}
	if len(x.Shape) == 0 || len(v.Shape) == 0 || !exec.SameShape(x.Shape[1:], v.Shape[1:]) {
		return c.Invalid("x and v shape doesn't match: %s vs. %s", x.Describe(), v.Describe())
	}
	if rows.Shape[0] != v.Shape[0] {
		return c.Invalid("i and v shape doesn't match at index 0: %s vs. %s", rows.Describe(), v.Describe())
	}
	return nil
}

// overwritten returns output 0 with the elements of input 0, in its memory if nothing
// else needs that.
func overwritten(c *exec.KernelContext) *exec.Tensor {
	if c.In(0).DType == exec.String {
		return copied(c)
	}
	d := c.OutOver(0, 0)
	if x := c.In(0); len(x.Data) > 0 && &d.Data[0] != &x.Data[0] {
		copy(d.Data, x.Data)
	}
	return d
}

// copied returns output 0 as a copy of input 0.
func copied(c *exec.KernelContext) *exec.Tensor {
	x := c.In(0)
	d := c.OutLike(0, x.DType, x)
	exec.CopyElems(d, 0, x, 0, x.NumElements())
	return d
}

func deepCopy(c *exec.KernelContext) error {
	copied(c)
	return nil
}
