package exec

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// productSum is products of one form that one AddN takes, and nothing else. The one that
// runs last computes the sum of all: the factors of the others are kept until then.
type productSum struct {
	steps []int // in the order of the sum
	last  int
}

// markSums lets products that only a sum takes be computed with it. The gradients of a
// variable that is used often are such products, each as large as the variable:
// so they are never all in memory, and memory is not read and written for each.
//
// The sum has the bits that it has without this, which depends on what a run
// fetches: only products at the beginning of its list are computed with it.
func (c *compiler) markSums() {
	steps := c.plan.steps
	makers, uses := c.makers(), c.uses()
	for i := range steps {
		if steps[i].op != "AddN" || steps[i].mayDie {
			continue
		}
		sum := &productSum{}
		for _, in := range steps[i].in {
			m := makers[in]
			if m < 0 || uses[in] != 1 || steps[m].form == 0 || steps[m].mayDie {
				break
			}
			if len(sum.steps) > 0 && steps[m].form != steps[sum.last].form {
				break
			}
			sum.steps = append(sum.steps, m)
			sum.last = max(sum.last, m)
		}
		for _, m := range sum.steps {
			if len(sum.steps) > 1 {
				steps[m].sum = sum
			}
		}
	}
}

// makers returns, by slot, the step that makes its value, or -1.
func (c *compiler) makers() []int {
	makers := make([]int, c.plan.slots)
	for i := range makers {
		makers[i] = -1
	}
	for i := range c.plan.steps {
		for _, out := range c.plan.steps[i].out {
			makers[out] = i
		}
	}
	return makers
}

// uses counts, by slot, what takes its value.
func (c *compiler) uses() []int {
	uses := make([]int, c.plan.slots)
	for _, slot := range c.plan.fetches {
		uses[slot]++
	}
	for i := range c.plan.steps {
		st := &c.plan.steps[i]
		for _, slot := range slices.Concat(st.in, st.control) {
			uses[slot]++
		}
	}
	return uses
}

// added is the value of an output that is part of another one.
type added struct{}

// Joining says how the product of a step is computed.
type Joining int

const (
	Alone Joining = iota // as if there were no sum
	Later                // not by this step
	All                  // with all others of its sum, as output 0
)

// Join says how the product of this step, which has the given type and shape, is
// computed. adds reports whether it can be computed with others. Where one of a
// sum cannot be, or the shapes of the factors differ, each is computed alone.
func (c *KernelContext) Join(adds bool, dt tfpb.DataType, shape ...int) (Joining, error) {
	if t := c.step.total; t != nil {
		if !c.collect(t, adds, dt, shape) {
			return Alone, nil
		}
		c.markAdded(dt, shape)
		return Later, nil
	}
	s := c.step.sum
	if s == nil || c.alone {
		return Alone, nil
	}
	if c.step != &c.f.plan.steps[s.last] {
		if !adds {
			return Alone, nil
		}
		c.markAdded(dt, shape)
		return Later, nil
	}
	if adds && c.joined() {
		return All, nil
	}
	return Alone, c.separate()
}

// markAdded makes output 0 a product that another step computes.
func (c *KernelContext) markAdded(dt tfpb.DataType, shape []int) {
	o := c.Slot(0)
	o.DType, o.Data, o.Strings, o.Value = dt, nil, nil, added{}
	o.Shape = append(o.Shape[:0], shape...)
}

// joined reports whether all other products of the sum have factors of the same
// shapes, and were left to this step.
func (c *KernelContext) joined() bool {
	x, y := c.In(0), c.In(1)
	for i := range c.Terms() {
		st := &c.f.plan.steps[c.step.sum.steps[i]]
		a, b := c.Term(i)
		if st != c.step && !isAdded(&c.f.slots[st.out[0]]) || !SameShape(a.Shape, x.Shape) || !SameShape(b.Shape, y.Shape) {
			return false
		}
	}
	return true
}

// separate computes the other products of the sum that were left to this step,
// each as its step's output.
func (c *KernelContext) separate() error {
	last := c.step
	defer func() { c.step, c.alone = last, false }()
	c.alone = true
	for _, i := range last.sum.steps {
		c.step = &c.f.plan.steps[i]
		if c.step == last || !isAdded(c.Output(0)) {
			continue
		}
		if err := c.step.kernel(c); err != nil {
			return err
		}
	}
	return nil
}

// Terms returns how many products the sum of this step has.
func (c *KernelContext) Terms() int { return len(c.step.sum.steps) }

// Term returns the factors of product i of the sum.
func (c *KernelContext) Term(i int) (x, y *Tensor) {
	st := &c.f.plan.steps[c.step.sum.steps[i]]
	return &c.f.slots[st.in[0]], &c.f.slots[st.in[1]]
}

// Added reports whether input i is part of another one.
func (c *KernelContext) Added(i int) bool { return isAdded(c.In(i)) }

func isAdded(t *Tensor) bool {
	_, ok := t.Value.(added)
	return ok
}
