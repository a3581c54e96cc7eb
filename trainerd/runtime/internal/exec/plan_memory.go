package exec

import (
	"math"
	"slices"
)

// lastUses returns, by slot, the index of the last step that needs its memory,
// looking through steps whose outputs may share the memory of their inputs.
func (c *compiler) lastUses() []int {
	p := c.plan
	last := make([]int, p.slots)
	for i := range last {
		last[i] = -1
	}
	for _, slot := range slices.Concat(p.fetches, p.pinned) {
		last[slot] = math.MaxInt
	}
	for i := range p.steps {
		if sum := p.steps[i].sum; sum != nil {
			for _, in := range p.steps[i].in {
				last[in] = max(last[in], sum.last)
			}
		}
	}
	for i := len(p.steps) - 1; i >= 0; i-- {
		st := &p.steps[i]
		reach := i
		for _, out := range st.out {
			reach = max(reach, last[out])
		}
		for k, in := range st.in {
			end := i
			if st.flags&AliasesAny != 0 || st.flags&AliasesFirst != 0 && k == 0 {
				end = reach
			}
			last[in] = max(last[in], end)
		}
	}
	return last
}

// markCopies finds the reads of variables whose value is used after a later
// step may have changed the variable; they copy, the others share its memory.
func (c *compiler) markCopies(last []int) {
	steps := c.plan.steps
	for i := range steps {
		st := &steps[i]
		if st.flags&ReadsState == 0 || len(st.in) == 0 || len(st.out) == 0 || st.calls {
			continue
		}
		var v any // nil: an argument of a function, any variable
		if handle := c.consts[st.in[0]]; handle != nil {
			v = handle.Value
		} else if last[st.out[0]] == math.MaxInt {
			st.copyRead = true // for the caller, whose steps are not known here
			continue
		}
		for j := i + 1; j < len(steps) && j <= last[st.out[0]] && !st.copyRead; j++ {
			st.copyRead = c.mayWrite(&steps[j], v)
		}
	}
}

// mayWrite reports whether a step can change the variable v, or any if that is nil, itself or
// by letting go of the state lock.
func (c *compiler) mayWrite(st *step, v any) bool {
	if st.flags&Blocking != 0 {
		return true
	}
	if st.flags&WritesState == 0 {
		return false
	}
	if st.calls {
		return true
	}
	for _, in := range st.in {
		t := c.consts[in]
		if t == nil && len(st.in) > 0 && in == st.in[0] {
			return true
		}
		if t != nil && t.Value != nil && (v == nil || t.Value == v) {
			return true
		}
	}
	return false
}

// markTakes finds the inputs whose memory a step may give to its output. What is
// fed is not among them: the next run fills its memory before the first step.
func (c *compiler) markTakes(last []int) {
	fed := map[int32]bool{}
	for _, f := range c.plan.feeds {
		fed[f.slot] = true
	}
	for i := range c.plan.steps {
		st := &c.plan.steps[i]
		for k, in := range st.in {
			if k < 8 && last[in] == i && !fed[in] && c.plan.bufOf[in] >= 0 {
				st.takes |= 1 << k
			}
		}
	}
}

// assignBuffers gives every value that a step makes a buffer, and hands a
// buffer on when the last step that needs its value is done.
func (c *compiler) assignBuffers(last []int) {
	p := c.plan
	p.bufOf = make([]int32, p.slots)
	for i := range p.bufOf {
		p.bufOf[i] = -1
	}
	for _, f := range p.feeds {
		p.bufOf[f.slot] = int32(p.bufs)
		p.bufs++
	}
	for _, slot := range p.pinned {
		p.bufOf[slot] = int32(p.bufs)
		p.bufs++
	}
	var free []int32
	expire := make([][]int32, len(p.steps))
	for i := range p.steps {
		for _, slot := range p.steps[i].out {
			b := int32(p.bufs)
			if n := len(free); n > 0 {
				b, free = free[n-1], free[:n-1]
			} else {
				p.bufs++
			}
			p.bufOf[slot] = b
			if end := max(last[slot], i); end < len(p.steps) {
				expire[end] = append(expire[end], b)
			}
		}
		free = append(free, expire[i]...)
	}
}
