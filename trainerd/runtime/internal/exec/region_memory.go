package exec

// What a unit of a region has made stays for so many further units after its last
// use, if it is no larger than this: a plan gives such memory to the next value at
// once, which would have to wait for that use.
const (
	spreadUnits = 32
	spreadBytes = 32 << 10
)

// spread gives the small values of a region, and those that have no memory of their
// own, other buffers than the plan does.
func (f *frame) spread(units []unit) {
	unitOf := map[int]int{}
	for i, u := range units {
		for k := u.first; k < u.end; k++ {
			unitOf[k] = i
		}
	}
	free := make([][]int32, len(units)+spreadUnits+1) // by the first unit that may have them
	var ready []int32
	for i, u := range units {
		ready = append(ready, free[i]...)
		for k := u.first; k < u.end; k++ {
			for _, slot := range f.plan.steps[k].out {
				if f.bufOf[slot] < 0 || !f.isSmall(&f.plan.steps[k], slot) {
					continue
				}
				if len(ready) == 0 {
					ready = append(ready, int32(len(f.bufs)))
					f.bufs = append(f.bufs, buffer{})
				}
				b := ready[0]
				ready = ready[1:]
				f.bufOf[slot] = b
				if end, ok := unitOf[max(f.plan.last[slot], k)]; ok {
					free[end+spreadUnits] = append(free[end+spreadUnits], b)
				}
			}
		}
	}
}

// isSmall reports whether an output of a step is small, or in the memory of an input.
func (f *frame) isSmall(st *step, slot int32) bool {
	reads := st.elements == readElements && !st.copyRead
	return reads || st.flags&(AliasesFirst|AliasesAny) != 0 || len(f.slots[slot].Data) <= spreadBytes
}

// regionBytes returns how much more memory the steps take where they run at the same
// time: in buffers from number own on, and in the lanes.
func (f *frame) regionBytes(own, lanes int) int64 {
	n := 0
	for k := range f.scratch {
		n += (lanes - 1) * f.scratch[k].size()
	}
	largest := make([]int, len(f.bufs))
	for slot, b := range f.bufOf {
		if b >= 0 {
			largest[b] = max(largest[b], len(f.slots[slot].Data))
		}
	}
	for _, size := range largest[own:] {
		n += size
	}
	return int64(n)
}
