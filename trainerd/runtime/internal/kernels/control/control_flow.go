package control

import (
	"strings"

	"github.com/trainerd/trainerd/trainerd/runtime/internal/exec"
	"github.com/trainerd/trainerd/trainerd/runtime/internal/kernels/elem"
)

// The ops that steer a run.
var controlFlowOps = exec.OpTable{
	"Assert":         {Flags: exec.Stateful, Build: buildAssert},
	"Switch":         {Flags: exec.AliasesFirst, Build: buildSwitch},
	"RefSwitch":      {Flags: exec.Stateful | exec.AliasesFirst, Build: buildSwitch},
	"Merge":          {Flags: exec.AliasesAny | exec.SeesDead, Build: buildMerge},
	"RefMerge":       {Flags: exec.AliasesAny | exec.SeesDead, Build: buildMerge},
	"ControlTrigger": {Flags: exec.Stateful | exec.SeesDead, Build: exec.WithoutAttrs(func(*exec.KernelContext) error { return nil })},
}

// Critical sections. A run holds the session's state from its first access to the end, and the
// graph orders the sections of one run: so there is nothing left to lock.
var criticalOps = exec.OpTable{
	"MutexV2":          {Flags: exec.Stateful, Build: exec.WithoutAttrs(makeMutex)},
	"MutexLock":        {Flags: exec.Stateful, Build: exec.WithoutAttrs(lockMutex)},
	"ConsumeMutexLock": {Flags: exec.Stateful, Build: exec.WithoutAttrs(func(*exec.KernelContext) error { return nil })},
}

func makeMutex(c *exec.KernelContext) error {
	c.SetHandle(0, nil)
	return nil
}

func lockMutex(c *exec.KernelContext) error {
	c.SetVariant(0, nil)
	return nil
}

var loopOps = exec.OpTable{
	"Enter":            {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"RefEnter":         {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"Exit":             {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"RefExit":          {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"NextIteration":    {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"RefNextIteration": {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
	"LoopCond":         {Flags: exec.PassThrough | exec.AliasesFirst, Build: exec.BuildIdentity},
}

func buildAssert(b *exec.OpConstruction) (exec.Kernel, error) {
	n := b.Int("summarize")
	return func(c *exec.KernelContext) error {
		ok := exec.Elems[bool](c.In(0))
		if len(ok) == 1 && ok[0] {
			return nil
		}
		var parts []string
		for i := 1; i < c.NumInputs(); i++ {
			parts = append(parts, summarize(c.In(i), n))
		}
		return c.Invalid("assertion failed: %s", strings.Join(parts, " "))
	}, nil
}

// summary renders the first elements of a tensor with brackets as TensorFlow does.
type summary struct {
	t           *exec.Tensor
	text        []byte
	done, limit int
}

// summarize renders the first n elements, all of them if n is negative.
func summarize(t *exec.Tensor, n int) string {
	total := t.NumElements()
	s := &summary{t: t, limit: total}
	if n >= 0 {
		s.limit = min(n, total)
	}
	if len(t.Shape) == 0 {
		if s.limit > 0 {
			s.element()
		}
	} else {
		s.dim(0)
	}
	if total > s.limit {
		s.text = append(s.text, "..."...)
	}
	return "[" + string(s.text) + "]"
}

// dim renders what is left of a dimension and those within it.
func (s *summary) dim(d int) {
	last := d == len(s.t.Shape)-1
	for i := range int(s.t.Shape[d]) {
		switch {
		case s.done >= s.limit && last && d > 0:
			s.text = append(s.text, "..."...)
			return
		case s.done >= s.limit:
			return
		case last:
			if i > 0 {
				s.text = append(s.text, ' ')
			}
			s.element()
		default:
			s.text = append(s.text, '[')
			s.dim(d + 1)
			s.text = append(s.text, ']')
		}
	}
}

// element renders the next element. Strings have no quotes here.
func (s *summary) element() {
	if s.t.DType == exec.String {
		s.text = elem.AppendEscaped(s.text, s.t.Strings[s.done])
	} else {
		s.text = elem.AppendElement(s.t, s.text, s.done)
	}
	s.done++
}

// buildSwitch builds the op that sends its input to one of two outputs; the
// other is dead.
func buildSwitch(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		if c.In(1).NumElements() != 1 {
			return c.Invalid("the predicate must be a scalar, not %s", c.In(1).Describe())
		}
		taken := 0
		if exec.Elems[bool](c.In(1))[0] {
			taken = 1
		}
		c.Alias(taken, c.In(0), c.In(0).Shape)
		c.Slot(1 - taken).Dead = true
		return nil
	}, nil
}

// buildMerge builds the op that passes on the one input that is not dead.
func buildMerge(b *exec.OpConstruction) (exec.Kernel, error) {
	return func(c *exec.KernelContext) error {
		for i := range c.NumInputs() {
			if t := c.In(i); !t.Dead {
				c.Alias(0, t, t.Shape)
				exec.Elems[int32](c.Out(1, exec.Int32))[0] = int32(i)
				return nil
			}
		}
		c.Slot(0).Dead = true
		c.Slot(1).Dead = true
		return nil
	}, nil
}
