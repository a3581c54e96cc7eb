package lists

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/variant"
)

// Optional values, by which branches remember what their gradients need.
var optionalOps = exec.OpTable{
	"OptionalNone":      {Flags: exec.Stateful, Build: exec.WithoutAttrs(func(c *exec.KernelContext) error { c.SetVariant(0, &variant.Optional{}); return nil })},
	"OptionalFromValue": {Flags: exec.Stateful, Build: exec.WithoutAttrs(optionalFrom)},
	"OptionalHasValue":  {Flags: exec.Stateful, Build: exec.WithoutAttrs(optionalHas)},
	"OptionalGetValue":  {Flags: exec.Stateful, Build: buildOptionalGet},
}

func optionalFrom(c *exec.KernelContext) error {
	o := &variant.Optional{Set: true}
	for i := range c.NumInputs() {
		o.Values = append(o.Values, c.Keep(c.In(i)))
	}
	c.SetVariant(0, o)
	return nil
}

func optional(c *exec.KernelContext) (*variant.Optional, error) {
	o, ok := c.In(0).Value.(*variant.Optional)
	if !ok {
		return nil, c.Invalid("input 0 is not an optional value")
	}
	return o, nil
}

func optionalHas(c *exec.KernelContext) error {
	o, err := optional(c)
	if err != nil {
		return err
	}
	exec.Elems[bool](c.Out(0, exec.Bool))[0] = o.Set
	return nil
}

func buildOptionalGet(b *exec.OpConstruction) (exec.Kernel, error) {
	types := b.Types("output_types")
	return func(c *exec.KernelContext) error {
		o, err := optional(c)
		if err != nil {
			return err
		}
		if !o.Set || len(o.Values) != len(types) {
			return c.Invalid("an optional value of %d components is asked for %d", len(o.Values), len(types))
		}
		for i, t := range o.Values {
			if t.DType != types[i] {
				return c.Invalid("component %d is %s, not %s", i, t.Describe(), exec.TypeName(types[i]))
			}
			c.Alias(i, t, t.Shape)
		}
		return nil
	}, nil
}
