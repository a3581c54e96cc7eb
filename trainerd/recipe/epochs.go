package recipe

import (
	"slices"
	"strings"
)

// heading is a line with nothing but an epoch or a step, such as "Epoch 3/10", that lines
// without one are below.
type heading struct {
	place  int64    // what it says, noStep before the first
	number int64    // of headings so far
	tags   []string // that have come below it
	lines  int64    // that have come below all of them
}

// isUnderHeading reports whether a line without a step belongs to the epoch in the heading above
// it: that is so as long as one such line follows each heading, and not one for every batch.
func (r *Reader) isUnderHeading(p *Point) bool {
	h := &r.heading
	if h.place < r.base || r.counted > 0 {
		return false
	}
	for _, v := range p.Values {
		if slices.Contains(h.tags, v.Tag) {
			r.counted = h.lines
			return false
		}
	}
	for _, v := range p.Values {
		h.tags = append(h.tags, v.Tag)
	}
	h.lines++
	r.last = h.place
	return true
}

// mark is the place of the last line of a form, and whether the one before was of the same
// epoch.
type mark struct {
	epoch, step, total int64
	several            bool
}

// countsThrough reports whether a line with an epoch and a total counts the steps of all
// epochs: its count has not begun again in an epoch after one with several lines, nor in a
// start that resumes within what would be the first epoch.
func (r *Reader) countsThrough(m *match) bool {
	form := m.line.Form
	before, seen := r.marks[form]
	r.marks[form] = mark{m.epoch, m.step, m.total, seen && before.epoch == m.epoch}
	switch {
	case r.learned.isThrough(form):
		return true
	case seen && (!before.several || m.total != before.total || before.step == before.total || m.epoch <= before.epoch || m.step <= before.step):
		return false
	case !seen && (m.epoch < 2 || r.base <= m.epoch || m.step <= r.base || m.step > 2*r.base || m.step >= m.total):
		return false // the checkpoint may count epochs, or saves
	}
	r.learned.noteThrough(form)
	return true
}

// epochState is what lines have said of epochs.
type epochState struct {
	epoch   int64 // of the last line with one that has not been used
	ended   int64 // length of the epoch whose last line is held, 0 for none
	named   bool  // a line has begun an epoch
	bare    int64 // length of the epochs that no line has begun, 0 for none
	current span  // the epoch of the last line with a step, too
}

// span is an epoch, with its length and its end in steps.
type span struct{ epoch, length, end int64 }

// takeEpoch takes the line at the end of an epoch. It is drawn once more with the
// values of the validation, if there is one, so one without them is kept until then,
// or until the next epoch begins.
func (r *Reader) takeEpoch(m *match, p *Point) *Point {
	switch {
	case r.epoch != noStep:
		p.Step, r.epoch, r.ended = r.epoch, noStep, m.total
		if slices.ContainsFunc(p.Values, func(v Value) bool { return strings.HasPrefix(v.Tag, "val_") }) {
			return p
		}
		r.held = p
	case r.ended != 0 && r.held != nil && m.total == r.ended && len(p.Values) > len(r.held.Values):
		p.Step = r.held.Step
		r.held, r.ended = nil, 0
		return p
	case !r.named && (r.bare == 0 || m.total == r.bare):
		return r.takeBareEpoch(m, p)
	}
	return nil // of an evaluation, or a line that is drawn twice
}

// takeBareEpoch takes the last line of an epoch that no line has begun: Keras names the
// epoch only where fit is to do several. It returns what was kept of the one before.
func (r *Reader) takeBareEpoch(m *match, p *Point) (before *Point) {
	if r.held != nil && slices.Equal(r.held.Values, p.Values) {
		return nil // it is drawn twice
	}
	before, r.held = r.held, p
	p.Step, r.bare, r.ended = r.count(), m.total, m.total
	return before
}

// beginEpoch takes the line at the beginning of an epoch, and returns what was kept
// of the one before.
func (r *Reader) beginEpoch(epoch int64) (before *Point) {
	r.epoch, r.named = epoch, true
	if r.ended != 0 {
		before, r.held, r.ended = r.held, nil, 0
	}
	return before
}
