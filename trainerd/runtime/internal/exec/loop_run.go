package exec

import "unsafe"

// loopPlan runs a loop.
type loopPlan struct {
	body    *Plan    // feeds: two for each variable, then the fixed inputs
	start   []int    // by variable: the input that it starts from
	fixed   []int    // the inputs that are the same in every iteration
	turns   []step   // what is done with them before the first iteration
	totals  []*total // the variables that are sums of products
	watched []bool   // by variable: whether the condition of a While takes it; nil for loops in the graph
}

// loopState is the memory of a running loop.
type loopState struct {
	vars  []loopVariable
	sums  []pending // by total
	turns [2]int32  // what a Merge says about where its value is from
}

// loopVariable is the memory of a variable. An iteration reads one half of it, and what
// it computes gets the other: values may be views of those of other variables.
type loopVariable struct {
	values [2]Tensor
	bufs   [2]buffer
	now    int // the half of values that is read
	at     int // that of bufs, where the value is not in other memory
}

func (s *loopState) begin(p *loopPlan) {
	if s.vars == nil {
		s.vars, s.sums = make([]loopVariable, len(p.start)), make([]pending, len(p.totals))
	}
	for i := range s.sums {
		s.sums[i].count = 0
	}
	s.turns = [2]int32{0, 1}
}

// turn returns the second output of a Merge: 0 in the first iteration, then 1.
func (s *loopState) turn(i int) Tensor {
	return Tensor{DType: Int32, Shape: []int{}, Data: unsafe.Slice((*byte)(unsafe.Pointer(&s.turns[i])), 4)}
}

// keep copies a variable's value for the next iteration.
func (v *loopVariable) keep(c *KernelContext, t *Tensor) {
	v.at = 1 - v.at
	b := &v.bufs[v.at]
	c.account(len(t.Data) - b.size())
	data := b.bytes(len(t.Data))
	copy(data, t.Data)
	v.set(t, data)
}

// exchange stores a variable's value, which is in the buffer made, by giving another
// one for that.
func (v *loopVariable) exchange(t *Tensor, made *buffer) {
	v.at = 1 - v.at
	v.bufs[v.at], *made = *made, v.bufs[v.at]
	v.set(t, t.Data)
}

// set makes t with the given memory the value.
func (v *loopVariable) set(t *Tensor, data []byte) {
	v.now = 1 - v.now
	u := &v.values[v.now]
	u.DType, u.Value, u.Data = t.DType, t.Value, data
	u.Shape = append(u.Shape[:0], t.Shape...)
	u.Strings = append(u.Strings[:0], t.Strings...)
}

func (p *loopPlan) run(c *KernelContext) error {
	f := p.body.acquire()
	defer p.body.release(f, c.run)
	s := &f.loop
	s.begin(p)
	for k, in := range p.start {
		f.slots[p.body.feeds[2*k].slot] = *c.In(in)
		f.slots[p.body.feeds[2*k+1].slot] = s.turn(0)
	}
	for k, in := range p.fixed {
		f.slots[p.body.feeds[2*len(p.start)+k].slot] = *c.In(in)
	}
	for i := range p.turns {
		if err := c.run.step(f, &p.turns[i]); err != nil {
			return err
		}
	}
	for {
		if err := c.run.steps(f); err != nil {
			return err
		}
		more := &f.slots[p.body.fetches[0]]
		if more.Dead || len(more.Shape) > 0 {
			return c.Invalid("the condition must be one boolean, not %s", more.Describe())
		}
		if !Elems[bool](more)[0] {
			break
		}
		if err := p.advance(c, f); err != nil {
			return err
		}
	}
	p.addTotals(c, f)
	return p.leave(c, f)
}

// addTotals adds what was collected when the loop ends.
func (p *loopPlan) addTotals(c *KernelContext, f *frame) {
	inner := KernelContext{ctx: c.ctx, run: c.run, f: f, step: c.step, lane: &f.lane}
	for _, t := range p.totals {
		inner.addPending(t)
	}
}

// advance makes what an iteration computed the variables of the next one.
func (p *loopPlan) advance(c *KernelContext, f *frame) error {
	for k := range p.start {
		slot := p.body.fetches[1+k]
		t := &f.slots[slot]
		if t.Dead {
			return c.Invalid("loop variable %d has no next value: it is on a branch that was not taken", k)
		}
		v := &f.loop.vars[k]
		switch b := f.bufOf[slot]; {
		case sameMemory(t, &f.slots[p.body.feeds[2*k].slot]):
			v.set(t, t.Data)
		case b >= 0 && f.bufs[b].holds(t.Data):
			v.exchange(t, &f.bufs[b])
		default:
			v.keep(c, t)
		}
	}
	for k := range p.start {
		v := &f.loop.vars[k]
		f.slots[p.body.feeds[2*k].slot] = v.values[v.now]
		f.slots[p.body.feeds[2*k+1].slot] = f.loop.turn(1)
	}
	return nil
}

// sameMemory reports whether x and y are numbers in the same memory.
func sameMemory(x, y *Tensor) bool {
	return len(x.Data) > 0 && len(x.Data) == len(y.Data) && &x.Data[0] == &y.Data[0]
}

// leave makes the values at the exits the outputs.
func (p *loopPlan) leave(c *KernelContext, f *frame) error {
	for i := range c.step.out {
		if i >= len(p.body.fetches)-1-len(p.start) {
			break // means the node itself where nothing is needed of it
		}
		t := &f.slots[p.body.fetches[1+len(p.start)+i]]
		if t.Dead {
			return c.Invalid("exit %d of the loop has no value", i)
		}
		c.CopyOut(i, t)
	}
	return nil
}
