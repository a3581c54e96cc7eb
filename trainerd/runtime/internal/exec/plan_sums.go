package exec

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// inSum is the place of a product in a sum.
type inSum struct {
	joins  bool  // output 0 may be added to the first product,
	first  int32 // which is in this slot,
	before int32 // if the product in this slot, the one before, was
}

// markSums lets products that only a sum takes be added to its first one as they
// are computed. The gradients of a variable that is used often are such products,
// each as large as the variable: so they are never all in memory.
//
// The sum has the bits that it has without this, which depends on what a run
// fetches: only products at the beginning of its list are added, and only while
// they are computed in its order.
func (c *compiler) markSums() {
	steps := c.plan.steps
	makers, uses := c.makers(), c.uses()
	for i := range steps {
		sum := &steps[i]
		if sum.op != "AddN" || sum.mayDie {
			continue
		}
		first, before := -1, -1
		for _, in := range sum.in {
			m := c.productOf(in, makers, uses)
			if m <= before {
				break
			}
			if first < 0 {
				first = m
			} else {
				steps[m].sum = inSum{joins: true, first: steps[first].out[0], before: steps[before].out[0]}
			}
			before = m
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

// productOf returns the step of the product in a slot that has one user, looking
// through identities; -1 if there is none.
func (c *compiler) productOf(slot int32, makers, uses []int) int {
	for {
		m := makers[slot]
		if m < 0 || uses[slot] != 1 || c.plan.steps[m].mayDie {
			return -1
		}
		switch st := &c.plan.steps[m]; st.op {
		case "MatMul":
			return m
		case "Identity":
			slot = st.in[0]
		default:
			return -1
		}
	}
}

// added is the value of an output that was added to another one.
type added struct{}

// AddTo returns the tensor that output 0, which would have the given type and
// shape, may be added to instead of being made; nil if it has to be made.
func (c *KernelContext) AddTo(dt tfpb.DataType, shape ...int) *Tensor {
	s := c.step.sum
	if !s.joins || s.before != s.first && !isAdded(&c.f.slots[s.before]) {
		return nil
	}
	t := &c.f.slots[s.first]
	if t.DType != dt || !slices.Equal(t.Shape, shape) {
		return nil
	}
	o := c.Slot(0)
	o.DType, o.Data, o.Strings, o.Value = dt, nil, nil, added{}
	o.Shape = append(o.Shape[:0], shape...)
	return t
}

// Added reports whether input i was added to an input before it.
func (c *KernelContext) Added(i int) bool { return isAdded(c.In(i)) }

func isAdded(t *Tensor) bool {
	_, ok := t.Value.(added)
	return ok
}
