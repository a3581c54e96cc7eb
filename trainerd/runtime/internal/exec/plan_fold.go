package exec

import "slices"

func (c *compiler) foldable(st *step) bool {
	if st.mayDie || st.flags&(Stateful|ReadsState|WritesState|Blocking|SeesDead) != 0 {
		return false
	}
	for _, in := range st.in {
		if c.consts[in] == nil {
			return false
		}
	}
	return true
}

// foldInto replaces a step by its results, if they can be had.
func (c *compiler) foldInto(st *step, index, outputs int) (bool, error) {
	values, err := c.fold(st, outputs)
	if err != nil {
		return false, nil
	}
	for i, v := range values {
		if err := c.budget.chargeBytes(st.name, len(v.Data)); err != nil {
			return false, err
		}
		slot := c.newSlot()
		c.consts[slot] = v
		if _, isVar := v.Value.(*Variable); isVar && v.DType != Resource {
			c.refs[slot] = true
		}
		c.bind(output{index, i}, slot)
	}
	return true, nil
}

// fold runs a step whose inputs are constants. An error is not a failure: the
// step stays in the plan, and reports it if it is reached.
func (c *compiler) fold(st *step, outputs int) (values []*Tensor, err error) {
	if c.folded == nil {
		c.folded = &frame{plan: &Plan{}}
	}
	f := c.folded // it is large, and used again for each constant
	n := len(st.in) + outputs
	*f = frame{plan: f.plan, bufOf: zeros(f.bufOf, n), bufs: zeros(f.bufs, n), slots: zeros(f.slots, n)}
	tmp := *st
	tmp.in, tmp.out = nil, nil
	for i, in := range st.in {
		f.slots[i] = *c.consts[in]
		tmp.in = append(tmp.in, int32(i))
	}
	for i := range outputs {
		slot := len(st.in) + i
		f.bufOf[slot] = int32(slot)
		tmp.out = append(tmp.out, int32(slot))
	}
	f.run = run{sess: c.sess, limit: foldLimit}
	if err := f.run.step(f, &tmp); err != nil {
		return nil, err
	}
	for _, slot := range tmp.out {
		t := f.slots[slot]
		if len(t.Data) > foldLimit && st.op != "Const" {
			return nil, errTooLargeToFold
		}
		t.Shape = append([]int(nil), t.Shape...)
		values = append(values, &t)
	}
	return values, nil
}

// zeros returns n zeros in the memory of list, if that suffices.
func zeros[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}
