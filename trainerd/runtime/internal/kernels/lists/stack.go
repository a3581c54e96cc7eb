package lists

import (
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
)

// Stacks of tensors: in which the loops of TensorFlow 1 keep what their gradients need.
// They live as long as the run.
var stackOps = exec.OpTable{
	"StackV2":      {Flags: exec.Stateful, Build: buildStack},
	"StackPushV2":  {Flags: exec.Stateful | exec.AliasesAny, Build: exec.WithoutAttrs(stackPush)},
	"StackPopV2":   {Flags: exec.Stateful, Build: buildStackPop},
	"StackCloseV2": {Flags: exec.Stateful, Build: exec.WithoutAttrs(func(*exec.KernelContext) error { return nil })},
}

// stack is a stack of tensors.
type stack struct {
	dtype tfpb.DataType
	limit int // -1 for none
	items []*exec.Tensor
}

func buildStack(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("elem_type")
	return func(c *exec.KernelContext) error {
		n := -1
		if c.NumInputs() > 0 {
			var err error
			if n, err = c.IntScalar(0, "the largest size of the stack"); err != nil {
				return err
			}
		}
		c.SetHandle(0, &stack{dtype: dt, limit: n})
		return nil
	}, nil
}

func stackOf(c *exec.KernelContext) (*stack, error) {
	s, ok := c.In(0).Value.(*stack)
	if !ok {
		return nil, c.Invalid("input 0 is not a stack")
	}
	return s, nil
}

func stackPush(c *exec.KernelContext) error {
	s, err := stackOf(c)
	if err != nil {
		return err
	}
	t := c.In(1)
	if s.limit >= 0 && len(s.items) >= s.limit {
		return c.Invalid("the stack has its largest size, %d", s.limit)
	}
	if t.DType != s.dtype {
		return c.Invalid("%s pushed on a stack of %s", t.Describe(), exec.TypeName(s.dtype))
	}
	s.items = append(s.items, c.Keep(t))
	c.Alias(0, t, t.Shape)
	return nil
}

func buildStackPop(b *exec.OpConstruction) (exec.Kernel, error) {
	dt := b.DType("elem_type")
	return func(c *exec.KernelContext) error {
		s, err := stackOf(c)
		if err != nil {
			return err
		}
		n := len(s.items)
		if n == 0 {
			return c.Invalid("the stack is empty")
		}
		t := s.items[n-1]
		if t.DType != dt {
			return c.Invalid("the top of the stack is %s, not %s", t.Describe(), exec.TypeName(dt))
		}
		s.items[n-1] = nil
		s.items = s.items[:n-1]
		c.Alias(0, t, t.Shape)
		return nil
	}, nil
}
