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
	cond, step := b.Function("cond"), b.Function("body")
	return func(c *exec.KernelContext) error { return loop(c, cond, step) }, nil
}

// loop runs step on its own results as long as cond holds.
func loop(c *exec.KernelContext, cond, step *exec.Plan) error {
	n := c.NumInputs()
	if cond.NumResults() != 1 || step.NumResults() != n {
		return c.Invalid("the condition has %d results, the body %d for %d variables", cond.NumResults(), step.NumResults(), n)
	}
	state, next := make([]*exec.Tensor, n), make([]*exec.Tensor, n)
	for i := range state {
		state[i] = c.In(i)
	}
	arg := func(i int) *exec.Tensor { return state[i] }
	for {
		var ok bool
		var bad error
		if err := c.Invoke(cond, arg, n, func(_ int, t *exec.Tensor) { ok, bad = elem.Truth(c, t) }); err != nil {
			return err
		}
		if bad != nil {
			return bad
		}
		if !ok {
			break
		}
		if err := c.Invoke(step, arg, n, func(i int, t *exec.Tensor) { next[i] = c.Keep(t) }); err != nil {
			return err
		}
		copy(state, next)
	}
	for i, t := range state {
		c.CopyOut(i, t)
	}
	return nil
}
