package exec

// turnedUses is how many products have to take a matrix transposed for it to be
// transposed once for all of them.
const turnedUses = 3

// turnFactors transposes matrices that several products take transposed, such as
// the weights of a cell that is unrolled in the gradient of each of its inputs: a
// product has to copy such a factor, while it may read another one where it is.
func (c *compiler) turnFactors() {
	users, most := map[int32]int{}, 0
	for i := range c.plan.steps {
		if st := &c.plan.steps[i]; st.turned != nil && !st.mayDie {
			users[st.in[1]]++
			most = max(most, users[st.in[1]])
		}
	}
	if most < turnedUses {
		return
	}
	steps := make([]step, 0, len(c.plan.steps)+len(users))
	turned := map[int32]int32{}
	for _, st := range c.plan.steps {
		if st.turned == nil || st.mayDie || users[st.in[1]] < turnedUses {
			steps = append(steps, st)
			continue
		}
		factor := st.in[1]
		if _, ok := turned[factor]; !ok {
			turned[factor] = c.newSlot()
			steps = append(steps, step{name: st.name, op: st.op, kernel: st.turn, in: []int32{factor}, types: st.types[1:], out: []int32{turned[factor]}})
		}
		st.kernel, st.form, st.in = st.turned, st.turnedForm, []int32{st.in[0], turned[factor]}
		steps = append(steps, st)
	}
	c.plan.steps = steps
}

// turnFixed transposes matrices that products in a loop take transposed in every iteration
// once, before the first one.
func (c *compiler) turnFixed(p *loopPlan) {
	fixed := map[int32]bool{}
	for _, f := range c.plan.feeds[2*len(p.start):] {
		fixed[f.slot] = true
	}
	turned := map[int32]int32{}
	for i := range c.plan.steps {
		st := &c.plan.steps[i]
		if st.turned == nil || !fixed[st.in[1]] {
			continue
		}
		factor := st.in[1]
		slot, ok := turned[factor]
		if !ok {
			slot = c.newSlot()
			turned[factor] = slot
			c.plan.pinned = append(c.plan.pinned, slot)
			p.turns = append(p.turns, step{name: st.name, op: st.op, kernel: st.turn, in: []int32{factor}, types: st.types[1:], out: []int32{slot}})
		}
		st.kernel, st.form, st.in, st.turned = st.turned, st.turnedForm, []int32{st.in[0], slot}, nil
	}
}
