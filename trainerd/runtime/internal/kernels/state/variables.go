package state

import (
	"github.com/trainerd/trainerd/internal/vec"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var variablesOps = exec.OpTable{
	"VariableV2":  {Build: buildVariable},
	"Variable":    {Build: buildVariable},
	"VarHandleOp": {Build: buildVariable},

	"Assign":                {Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef | exec.SetsWhole, Build: buildAssign},
	"AssignAdd":             {Types: elem.FoldTypes("Add"), Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef, Build: buildAssignAdd("T")},
	"AssignSub":             {Types: elem.FoldTypes("Add"), Flags: exec.Stateful | exec.WritesState | exec.ForwardsRef, Build: buildAssignSub("T")},
	"IsVariableInitialized": {Flags: exec.Stateful | exec.ReadsState, Build: exec.WithoutAttrs(isInitialized)},
	"CountUpTo":             {Types: exec.Indices, Flags: exec.Stateful | exec.WritesState, Build: buildCountUpTo},

	"ReadVariableOp":      {Flags: exec.Stateful | exec.ReadsState, Build: buildReadVariable},
	"AssignVariableOp":    {Flags: exec.Stateful | exec.WritesState | exec.SetsWhole, Build: buildAssignVariable},
	"AssignAddVariableOp": {Types: elem.FoldTypes("Add"), TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: buildAssignAdd("dtype")},
	"AssignSubVariableOp": {Types: elem.FoldTypes("Add"), TypeAttr: "dtype", Flags: exec.Stateful | exec.WritesState, Build: buildAssignSub("dtype")},
	"VarIsInitializedOp":  {Flags: exec.Stateful | exec.ReadsState, Build: exec.WithoutAttrs(isInitialized)},
	"DisableCopyOnRead":   {Flags: exec.Stateful, Build: exec.WithoutAttrs(func(*exec.KernelContext) error { return nil })}, // reads copy nothing here
	"VariableShape":       {Flags: exec.Stateful | exec.ReadsState, Build: buildVariableShape},
	"DestroyResourceOp":   {Flags: exec.Stateful | exec.WritesState | exec.SetsWhole, Build: buildDestroyVariable},
	"ResourceCountUpTo":   {Types: exec.Indices, Flags: exec.Stateful | exec.WritesState, Build: buildCountUpTo},
}

func buildVariable(b *exec.OpConstruction) (exec.Kernel, error) {
	v, err := b.Variable()
	if err != nil {
		return nil, err
	}
	dt := v.DType
	if b.Op() == "VarHandleOp" {
		dt = exec.Resource
	}
	return func(c *exec.KernelContext) error {
		t := c.Slot(0)
		t.DType, t.Value = dt, v
		return nil
	}, nil
}

func buildReadVariable(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("dtype")
	b.Reads()
	return func(c *exec.KernelContext) error {
		if _, err := c.TypedVariable(0, dt); err != nil {
			return err
		}
		return exec.ReadVariable(c)
	}, nil
}

func isInitialized(c *exec.KernelContext) error {
	v, err := c.Variable(0)
	if err != nil {
		return err
	}
	exec.Elems[bool](c.Out(0, exec.Bool))[0] = v.Initialized
	return nil
}

func buildDestroyVariable(b *exec.OpConstruction) (exec.Kernel, error) {
	lenient := b.Bool("ignore_lookup_error")
	return func(c *exec.KernelContext) error {
		v, err := c.Variable(0)
		if err != nil {
			return err
		}
		if !v.Initialized && !lenient {
			return c.Errorf(tfpb.Code_NOT_FOUND, "variable %q does not exist", v.Name)
		}
		v.Initialized = false
		return nil
	}, nil
}

// assignInput stores the value of input 1 in the variable of input 0.
func assignInput(c *exec.KernelContext, validate bool) error {
	v, err := c.Variable(0)
	if err != nil {
		return err
	}
	t := c.In(1)
	if v.DType != t.DType {
		return c.Invalid("variable %q is %s, the value %s", v.Name, exec.TypeName(v.DType), exec.TypeName(t.DType))
	}
	if validate && !v.Accepts(t.Shape) {
		return c.Invalid("variable %q has the shape %s, the value %s", v.Name, exec.ShapeString(v.Shape), exec.ShapeString(t.Shape))
	}
	c.Assign(v, t)
	return nil
}

func buildAssign(b *exec.OpConstruction) (exec.Kernel, error) {
	validate := b.Bool("validate_shape")
	b.Elementwise(&exec.Elements{Stores: true})
	return func(c *exec.KernelContext) error { return assignInput(c, validate) }, nil
}

func buildAssignVariable(b *exec.OpConstruction) (exec.Kernel, error) {
	// The shape of the handle holds whatever validate_shape says, because
	// later users of the variable were built for it.
	b.Elementwise(&exec.Elements{Stores: true})
	return func(c *exec.KernelContext) error { return assignInput(c, true) }, nil
}

func buildAssignAdd(attr string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		b.Elementwise(&exec.Elements{Vv: vec.Add[float32], Stores: true})
		return update(b.DType(attr), "Add"), nil
	}
}

func buildAssignSub(attr string) func(*exec.OpConstruction) (exec.Kernel, error) {
	return func(b *exec.OpConstruction) (exec.Kernel, error) {
		b.Elementwise(&exec.Elements{Vv: vec.Sub[float32], Stores: true})
		return update(b.DType(attr), "Sub"), nil
	}
}

// update is the kernel that folds a value of its shape into a variable.
func update(dt tfpb.DataType, op string) exec.Kernel {
	f, whole := elem.FoldOf(op, dt), []int{0} // one row
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, dt)
		if err != nil {
			return err
		}
		x := c.In(1)
		if !exec.SameShape(x.Shape, v.Value.Shape) {
			return c.Invalid("variable %q has the shape %s, the value %s", v.Name, exec.ShapeString(v.Value.Shape), exec.ShapeString(x.Shape))
		}
		f(&v.Value, whole, x, 0, x.NumElements())
		return nil
	}
}

func buildCountUpTo(b *exec.OpConstruction) (exec.Kernel, error) {
	limit, dt := b.Int("limit"), b.DType("T")
	return func(c *exec.KernelContext) error {
		v, err := c.TypedVariable(0, dt)
		if err != nil {
			return err
		}
		if v.Value.NumElements() != 1 {
			return c.Invalid("variable %q is not a scalar", v.Name)
		}
		n := v.Value.IntAt(0)
		if n >= limit {
			return c.Errorf(tfpb.Code_OUT_OF_RANGE, "reached the limit of %d", limit)
		}
		v.ResumeCounting()
		exec.SetInt(c.Out(0, v.DType), 0, n)
		exec.SetInt(&v.Value, 0, n+1)
		return nil
	}, nil
}

func buildVariableShape(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.IndexType("out_type")
	return func(c *exec.KernelContext) error {
		v, err := c.InitializedVariable(0)
		if err != nil {
			return err
		}
		elem.SetShape(c, 0, dt, &v.Value)
		return nil
	}, nil
}
