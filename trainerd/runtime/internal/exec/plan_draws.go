package exec

// drawFirst moves the steps of a function that draw random numbers, and those that they
// need, before the others: the rest of a call can run next to other calls. It is not
// done where a step accesses other state, for then calls are made one after the other.
func (c *compiler) drawFirst() {
	p := c.plan
	if c.depth == 0 || p.ordered || p.pure == 0 {
		return
	}
	first := make([]bool, len(p.steps))
	slots, ids := map[int32]bool{}, map[int32]bool{}
	n := 0
	for i := p.pure - 1; i >= 0; i-- {
		st := &p.steps[i]
		if st.flags&(ReadsState|WritesState) == 0 && !ids[st.id] && !makesAny(st.out, slots) {
			continue
		}
		first[i] = true
		n++
		for _, list := range [][]int32{st.in, st.control} {
			for _, slot := range list {
				slots[slot] = true
			}
		}
		for _, id := range st.after {
			ids[id] = true
		}
	}
	if n == p.pure {
		return
	}
	steps := make([]step, 0, len(p.steps))
	for _, want := range []bool{true, false} {
		for i := range p.steps {
			if first[i] == want {
				steps = append(steps, p.steps[i])
			}
		}
	}
	p.steps, p.pure = steps, n
}

func makesAny(out []int32, slots map[int32]bool) bool {
	for _, slot := range out {
		if slots[slot] {
			return true
		}
	}
	return false
}
