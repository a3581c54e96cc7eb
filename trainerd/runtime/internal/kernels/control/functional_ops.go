package control

import (
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

var functionalOps = exec.OpTable{
	"PartitionedCall":         {Flags: exec.Stateful, Build: buildCall},
	"StatefulPartitionedCall": {Flags: exec.Stateful, Build: buildCall},
	"If":                      {Flags: exec.Stateful, Build: buildIf},
	"StatelessIf":             {Flags: exec.Stateful, Build: buildIf},
	"Case":                    {Flags: exec.Stateful, Build: buildCase},
	"StatelessCase":           {Flags: exec.Stateful, Build: buildCase},
	"While":                   {Flags: exec.Stateful, Build: buildWhile},
	"StatelessWhile":          {Flags: exec.Stateful, Build: buildWhile},
}

func buildCall(b *exec.OpConstruction) (exec.Kernel, error) {
	p := b.Function("f")
	return func(c *exec.KernelContext) error { return c.Apply(p, 0) }, nil
}

func buildIf(b *exec.OpConstruction) (exec.Kernel, error) {
	yes, no := b.Function("then_branch"), b.Function("else_branch")
	return func(c *exec.KernelContext) error {
		ok, err := elem.Truth(c, c.In(0))
		if err != nil {
			return err
		}
		if ok {
			return c.Apply(yes, 1)
		}
		return c.Apply(no, 1)
	}, nil
}

func buildCase(b *exec.OpConstruction) (exec.Kernel, error) {
	var plans []*exec.Plan
	for _, f := range b.Attr("branches").GetList().GetFunc() {
		plans = append(plans, b.FunctionNamed(f.GetName()))
	}
	if len(plans) == 0 {
		b.Fail("attribute branches is empty")
	}
	return func(c *exec.KernelContext) error {
		i, err := c.IntScalar(0, "the branch")
		if err != nil {
			return err
		}
		if i < 0 || i >= len(plans) {
			i = len(plans) - 1
		}
		return c.Apply(plans[i], 1)
	}, nil
}

func buildWhile(b *exec.OpConstruction) (exec.Kernel, error) {
	w := b.While()
	return func(c *exec.KernelContext) error { return w.Run(c, elem.Truth) }, nil
}
