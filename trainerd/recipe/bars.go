package recipe

import "strconv"

// barState is what progress bars have said.
type barState struct {
	bars map[string]*bar // by the line's form and the bar's length
	main int64           // length of the bar of the training, 0 before it
	// A bar is cleared before a line and drawn again after it, with the step of that
	// line. The two come by different pipes, so either may be read first.
	cleared, redrawn, clears bool
}

// bar is a count of steps that begins again.
type bar struct{ epoch, last, offset, heading int64 }

// hold keeps what a bar says about its step, and returns what it has said about the previous one: a
// bar is first drawn with the previous step's numbers, and then with its own.
func (r *Reader) hold(p *Point) (before *Point) {
	switch {
	case r.held == nil || p.Step > r.held.Step:
		before, r.held = r.held, p
	case p.Step == r.held.Step:
		r.held = p
	}
	return before
}

// barOf returns the count that a line continues: if the number falls, or the number of its epoch
// rises, an epoch has begun. Without a total, that epoch is assumed to be the first since the
// start.
func (r *Reader) barOf(m *match) *bar {
	key := m.line.Form + "|" + strconv.FormatInt(m.total, 10)
	b := r.bars[key]
	if b == nil {
		b = &bar{epoch: m.epoch, heading: r.heading.number}
		switch {
		case m.step > r.base:
		case m.total > 0:
			b.offset = r.base / m.total * m.total
		case r.beginsAgain(m):
			b.offset = r.base
		}
		r.bars[key] = b
	}
	isNext := m.epoch > b.epoch || m.epoch == noStep && r.heading.number > b.heading
	falls := m.step < b.last && (m.epoch != noStep || m.line.counts() || isNext)
	if falls || m.step == b.last && isNext {
		b.offset += max(b.last, m.total)
		r.learned.noteRestart(m.line.Form)
	}
	b.epoch, b.last, b.heading = m.epoch, m.step, r.heading.number
	return b
}

// beginsAgain reports whether the steps of a line count within an epoch: its form says that, or
// lines have shown it, or it is below the heading of a later epoch and far below the checkpoint's
// step.
func (r *Reader) beginsAgain(m *match) bool {
	return m.line.counts() || r.learned.hasRestarted(m.line.Form) || r.heading.place > 1 && m.step <= r.base/2
}

// againOf returns the count of a program that begins to count again when it continues: the
// step of its checkpoint is the last one of those before.
func (r *Reader) againOf(m *match) *bar {
	b := r.bars[m.line.Form]
	if b != nil {
		return b
	}
	b = &bar{}
	r.bars[m.line.Form] = b
	if m.step <= r.base && !r.learned.isFirst(m, r.base == 0) {
		r.rebased = true
		if r.base > 0 {
			b.offset = r.base + 1
		}
	}
	return b
}
