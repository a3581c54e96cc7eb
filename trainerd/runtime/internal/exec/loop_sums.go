package exec

import tfpb "github.com/trainerd/trainerd/proto"

// total is a variable of a loop that nothing happens to but that each iteration adds a
// product to it, such as the gradient of a weight that the loop uses. It is computed when
// the loop ends: until then, the factors are collected, which are smaller. Its bits are
// those of adding the products one after the other.
type total struct {
	index    int     // among those of the loop
	variable int     // of the loop
	views    []int32 // slots of the body whose values are the variable's, or may be
	add      AddProducts
}

// AddProducts adds products to a tensor, one after the other: their factors are stacked in
// x and y, so many rows of each for a product.
type AddProducts func(d, x, y *Tensor, rows int)

// pending is the products that are still to be added to a total.
type pending struct {
	rows    int // of the factors of one
	count   int
	factors [2]buffer
}

// mostPending bounds the rows of factors that are collected; more elements than fewPending are
// to be no more than four times those of the total.
const (
	mostPending = 512
	fewPending  = 1 << 18
)

// findTotals finds the variables that are sums of products. Their products are not
// computed by their steps, and what adds them to the variable does nothing.
func (c *compiler) findTotals(p *loopPlan) {
	makers, uses := c.makers(), c.uses()
	for k := range p.start {
		i := makers[c.plan.fetches[1+k]]
		if i < 0 || p.watched != nil && p.watched[k] {
			continue
		}
		sum := &c.plan.steps[i]
		if sum.op != "Add" && sum.op != "AddV2" && sum.op != "AddN" || len(sum.in) != 2 || len(sum.out) != 1 || uses[sum.out[0]] != 1 {
			continue
		}
		for side, in := range sum.in {
			m := makers[in]
			if m < 0 || uses[in] != 1 || c.plan.steps[m].add == nil {
				continue
			}
			views := c.viewsOf(p, k, sum.in[1-side], makers, uses)
			if views == nil {
				continue
			}
			t := &total{index: len(p.totals), variable: k, views: views, add: c.plan.steps[m].add}
			p.totals = append(p.totals, t)
			c.plan.steps[m].total = t
			c.plan.steps[m].elements, sum.elements = nil, nil
			sum.kernel = passTotal(sum.kernel, 1-side)
			sum.flags |= AliasesAny
			break
		}
	}
}

// passTotal is a kernel that adds, or passes on input i where the other one was
// collected.
func passTotal(add Kernel, i int) Kernel {
	return func(c *KernelContext) error {
		if x := c.In(i); isAdded(c.In(1 - i)) {
			c.Alias(0, x, x.Shape)
			return nil
		}
		return add(c)
	}
}

// viewsOf returns the slots with the value of a variable on the way to the given slot, and
// to the exits. It is nil if the slot is not the variable's value, or if anything else
// takes that.
func (c *compiler) viewsOf(p *loopPlan, variable int, slot int32, makers, uses []int) []int32 {
	views := []int32{slot}
	for uses[slot] == 1 {
		if slot == c.plan.feeds[2*variable].slot {
			return views
		}
		if makers[slot] < 0 {
			return nil
		}
		st := &c.plan.steps[makers[slot]]
		switch {
		case st.op == "Switch":
			exit := st.out[0] + st.out[1] - slot
			if uses[exit] != c.exitsOf(p, exit) {
				return nil
			}
			views = append(views, exit)
		case st.op != "Identity":
			return nil
		}
		slot = st.in[0]
		views = append(views, slot)
	}
	return nil
}

// exitsOf counts the exits that pass on a slot.
func (c *compiler) exitsOf(p *loopPlan, slot int32) int {
	n := 0
	for _, s := range c.plan.fetches[1+len(p.start):] {
		if s == slot {
			n++
		}
	}
	return n
}

// slot returns the slot of the variable itself.
func (t *total) slot() int32 { return t.views[len(t.views)-1] }

// collect notes the product of the step, of the given shape, as one that is to be added to
// the total. It is false if the step has to compute it.
func (c *KernelContext) collect(t *total, adds bool, dt tfpb.DataType, shape []int) bool {
	sum, x, y := &c.f.slots[t.slot()], c.In(0), c.In(1)
	q := &c.f.loop.sums[t.index]
	if !adds || sum.DType != dt || !SameShape(sum.Shape, shape) {
		c.addPending(t)
		return false
	}
	if rows := x.Shape[0]; q.rows != rows || q.count*rows >= mostPending || (q.count+1)*rows*(shape[0]+shape[1]) > max(fewPending, 4*NumElements(shape)) {
		c.addPending(t)
	}
	q.rows = x.Shape[0]
	q.append(c, 0, x)
	q.append(c, 1, y)
	q.count++
	return true
}

// append adds the rows of a factor.
func (q *pending) append(c *KernelContext, i int, t *Tensor) {
	b, at := &q.factors[i], q.count*len(t.Data)
	if need := at + len(t.Data); b.size() < need {
		var larger buffer
		c.account(max(need, 2*b.size()) - b.size())
		copy(larger.bytes(max(need, 2*b.size())), b.bytes(at))
		*b = larger
	}
	copy(b.bytes(at + len(t.Data))[at:], t.Data)
}

// addPending adds what was collected to a total, in memory of the variable's own.
func (c *KernelContext) addPending(t *total) {
	f, q := c.f, &c.f.loop.sums[t.index]
	if q.count == 0 {
		return
	}
	v, sum := &f.loop.vars[t.variable], f.slots[t.slot()]
	if !v.bufs[v.at].holds(sum.Data) {
		v.keep(c, &sum)
		for _, slot := range t.views {
			if view := &f.slots[slot]; sameMemory(view, &sum) {
				view.Data = v.values[v.now].Data
			}
		}
	}
	t.add(&f.slots[t.slot()], q.factor(0, &sum), q.factor(1, &sum), q.rows)
	q.count = 0
}

// factor returns what was collected of a factor, for a product like sum.
func (q *pending) factor(i int, sum *Tensor) *Tensor {
	rows, width := q.count*q.rows, sum.Shape[i]
	return &Tensor{DType: sum.DType, Shape: []int{rows, width}, Data: q.factors[i].bytes(rows * width * ElemSize(sum.DType))}
}
