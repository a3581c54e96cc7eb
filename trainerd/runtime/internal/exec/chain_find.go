package exec

import (
	"slices"

	tfpb "github.com/trainerd/trainerd/proto"
)

// maxLinks bounds a chain, for what its steps read and write has to fit the first
// cache.
const maxLinks = 64

// findChains finds the chains of a frame whose plan has run.
func (f *frame) findChains() {
	f.searched = true
	ch := new(chain)
	for i := 0; i < len(f.plan.steps); {
		if f.plan.steps[i].elements == nil || !f.chainFrom(ch, i) {
			i++
			continue
		}
		if f.chains == nil {
			f.chains = make([]*chain, len(f.plan.steps))
		}
		f.chains[i] = ch
		i, ch = ch.end, new(chain)
	}
}

// chainFrom makes ch the chain that begins with step i, and reports whether there is one.
func (f *frame) chainFrom(ch *chain, i int) bool {
	*ch = chain{end: i}
	made := map[int32]bool{} // slots of the chain's results
	computed, all, links := 0, 0, 0
	for j := i; j < len(f.plan.steps) && len(ch.links) < maxLinks; j++ {
		l, ok := f.link(ch, &f.plan.steps[j], made)
		if !ok {
			break
		}
		ch.links = append(ch.links, l)
		if !l.elements.Stores {
			made[l.step.out[0]] = true
		}
		if l.elements.reads {
			continue
		}
		if !l.elements.Stores || l.elements.Vv != nil {
			computed++
		}
		all++
		ch.end, links = j+1, len(ch.links)
	}
	if computed == 0 || all < 2 && ch.dtype == Float32 {
		return false // a store alone copies once
	}
	ch.links = ch.links[:links]
	ch.place(f.plan.last)
	return true
}

// link returns the next link of a chain, if the step can be one.
func (f *frame) link(ch *chain, st *step, made map[int32]bool) (link, bool) {
	l := link{step: st, elements: st.elements, reg: -1}
	switch {
	case st.elements == nil:
		return l, false
	case st.elements.reads:
		t := &f.slots[st.out[0]]
		l.shape = slices.Clone(t.Shape)
		return l, !st.copyRead && !t.Dead && ch.has(t.DType)
	case st.elements.Stores:
		v, ok := f.slots[st.in[0]].Value.(*Variable)
		if !ok || v.DType != Float32 || !ch.has(Float32) || !ch.takes(v.Value.Shape) {
			return l, false
		}
		l.shape = ch.shape
		return l, l.add(f, ch, made, 1) && l.in[0].form == whole
	}
	t := &f.slots[st.out[0]]
	if t.Dead || !ch.has(t.DType) || !ch.takes(t.Shape) {
		return l, false
	}
	l.shape = ch.shape
	for k := range st.in {
		if !l.add(f, ch, made, k) {
			return l, false
		}
	}
	return l, l.computes()
}

// has reports whether values of a type belong into the chain, whose type is that of its first one.
func (ch *chain) has(dt tfpb.DataType) bool {
	if ch.dtype == NoType && chains(dt) {
		ch.dtype = dt
	}
	return ch.dtype == dt
}

// takes reports whether a result has the shape of the chain, which is that of its
// first one.
func (ch *chain) takes(shape []int) bool {
	if ch.shape != nil {
		return SameShape(ch.shape, shape)
	}
	size := NumElements(shape)
	if size < chainElements {
		return false
	}
	ch.shape, ch.size = slices.Clone(shape), size
	return true
}

// add adds input k of the step to the operands, if a chain can have it.
func (l *link) add(f *frame, ch *chain, made map[int32]bool, k int) bool {
	slot := l.step.in[k]
	t := &f.slots[slot]
	o := operand{index: k, inner: made[slot], reg: -1, shape: slices.Clone(t.Shape)}
	if t.DType != ch.dtype || t.Dead {
		return false
	}
	last := len(ch.shape) - 1
	switch {
	case isAdded(t):
		o.form = absent
	case SameShape(t.Shape, ch.shape):
	case t.NumElements() == 1 && len(t.Shape) <= len(ch.shape):
		o.form = scalar
	case rowOfShape(ch.shape, t.Shape):
		o.form, ch.row = inRow, ch.shape[last]
	case len(t.Shape) == len(ch.shape) && t.Shape[last] == 1 && SameShape(t.Shape[:last], ch.shape[:last]):
		o.form, ch.row = column, ch.shape[last]
	default:
		return false
	}
	l.in = append(l.in, o)
	return true
}

// rowOfShape reports whether row is the shape of the last dimension alone.
func rowOfShape(shape, row []int) bool {
	n := len(row)
	return n > 0 && n <= len(shape) && row[n-1] == shape[len(shape)-1] && NumElements(row) == row[n-1]
}

// computes reports whether the op has the form that its operands need.
func (l *link) computes() bool {
	e := l.elements
	if e.Sums {
		wholes := 0
		for _, o := range l.in {
			if o.form == whole {
				wholes++
			} else if o.form != absent {
				return false
			}
		}
		return wholes > 0
	}
	switch len(l.in) {
	case 1:
		return e.V != nil && l.in[0].form == whole
	case 2:
		x, y := l.in[0].form, l.in[1].form
		switch {
		case x == whole && (y == whole || y == inRow), x == inRow && y == whole:
			return e.Vv != nil
		case x == whole && (y == scalar || y == column):
			return e.Vs != nil
		case y == whole && (x == scalar || x == column):
			return e.Sv != nil
		}
	}
	return false
}

// place gives the values that no step after the chain needs places in a block.
func (ch *chain) place(last []int) {
	regOf := map[int32]int{}
	lastOf := map[int32]int{}
	for i := range ch.links {
		l := &ch.links[i]
		for _, o := range l.in {
			lastOf[l.step.in[o.index]] = i
		}
		ch.access |= l.step.flags & (ReadsState | WritesState)
	}
	var free []int
	for i := range ch.links {
		l := &ch.links[i]
		for k := range l.in {
			if reg, ok := regOf[l.step.in[l.in[k].index]]; ok {
				l.in[k].reg = reg
			}
		}
		if l.elements.Sums { // the sum begins before the last input is read
			l.reg = ch.register(l, last, &free)
		}
		for k := range l.in {
			slot := l.step.in[l.in[k].index]
			if reg, ok := regOf[slot]; ok && lastOf[slot] == i {
				free = append(free, reg)
				delete(regOf, slot)
			}
		}
		if !l.elements.Sums {
			l.reg = ch.register(l, last, &free)
		}
		if l.reg >= 0 {
			regOf[l.step.out[0]] = l.reg
		}
	}
}

// register returns a place for the result of a link, or -1 if it needs memory.
func (ch *chain) register(l *link, last []int, free *[]int) int {
	if l.elements.reads || l.elements.Stores || last[l.step.out[0]] >= ch.end {
		return -1
	}
	if n := len(*free); n > 0 {
		reg := (*free)[n-1]
		*free = (*free)[:n-1]
		return reg
	}
	ch.regs++
	return ch.regs - 1
}
