package recipe

// stepState is the position of the training.
type stepState struct {
	step    int64      // of the last line with one, noStep for none
	last    int64      // the step of the last line with numbers, noStep for none
	inSteps bool       // numbers came with steps, not epochs
	counted int64      // lines without a step
	rebased bool       // steps were counted from where a bar began again
	pending []*waiting // for their steps
}

// place handles a line that only gives the position of the training.
func (r *Reader) place(m *match) *Point {
	if m.total == noStep {
		r.heading = heading{place: max(m.step, m.epoch), number: r.heading.number + 1, lines: r.heading.lines}
	}
	switch {
	case m.step == noStep:
		return r.beginEpoch(m.epoch)
	case m.epoch == noStep && m.total != noStep && r.main == 0:
		r.main = m.total
	case m.epoch == noStep && m.total != noStep && m.total != r.main:
		return nil // the bar of an evaluation
	}
	r.step = r.progress(m)
	drawnAgain := r.cleared
	r.redrawn, r.cleared = drawnAgain && len(r.pending) == 0, false
	switch {
	case len(r.pending) == 0:
		return nil
	case drawnAgain:
		return r.release(r.step)
	case r.clears:
		return nil // the bar that belongs to what waits has not been read yet
	}
	// A program that does not clear its bar; by the second one that is known.
	if next := r.pending[0].next; next != noStep {
		return r.release(next)
	}
	r.pending[0].next = r.step
	return nil
}

// release returns what has waited longest for a step.
func (r *Reader) release(step int64) *Point {
	if len(r.pending) == 0 {
		return nil
	}
	p := r.pending[0].Point
	r.pending = r.pending[1:]
	p.Step = r.corrected(max(step, 0), p)
	return p
}

// corrected returns the step of a point, which a bar says, as the epoch in it allows: not
// after the end of the bar.
func (r *Reader) corrected(step int64, p *Point) int64 {
	step = r.learned.correct(step, p)
	if r.main > 0 {
		step = min(step, r.main)
	}
	return step
}

// stepOf returns the step of a line with numbers. An epoch alone counts as a step if no line has
// had steps.
func (r *Reader) stepOf(m *match) int64 {
	switch {
	case m.step != noStep:
	case r.inSteps && r.step != noStep:
		return r.endOf(m.epoch)
	case m.epoch == noStep: // it has a part of an epoch
		return r.count()
	default:
		return m.epoch
	}
	r.inSteps = true
	r.step = r.progress(m)
	return r.step
}

// endOf returns the step of a line about an epoch: its end, if the last line with a
// step was just before that. A bar may be drawn too seldom for its last step.
func (r *Reader) endOf(epoch int64) int64 {
	const near = 10 // parts of an epoch
	if c := r.current; c.epoch == epoch && r.step < c.end && c.end-r.step <= c.length/near+1 {
		r.step = c.end
	}
	return r.step
}

// progress returns the step of a line since the beginning of the training.
func (r *Reader) progress(m *match) int64 {
	switch {
	case m.line.Again:
		return m.step + r.againOf(m).offset
	case m.epoch != noStep && m.total != noStep && r.countsThrough(m):
		return m.step
	case m.epoch != noStep && m.total != noStep:
		epoch := max(m.epoch-r.learned.firstOf(m, r.base), 0)
		r.current = span{m.epoch, m.total, (epoch + 1) * m.total}
		return epoch*m.total + m.step
	case m.epoch == noStep && !m.line.counts() && r.heading.number == 0:
		return m.step
	}
	r.rebased = r.rebased || m.line.counts()
	return m.step + r.barOf(m).offset
}

// count makes up a step.
func (r *Reader) count() int64 {
	r.counted++
	return r.base + r.counted
}

// waiting is a line without a step, and the step of the first bar after it.
type waiting struct {
	*Point
	next int64
}
