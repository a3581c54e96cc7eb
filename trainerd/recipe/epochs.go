package recipe

import (
	"slices"
	"sync"
)

// heading is a line with nothing but an epoch or a step, such as "Epoch 3/10", that lines
// without one are below.
type heading struct {
	place  int64    // what it says, noStep before the first
	number int64    // of headings so far
	tags   []string // that have come below it
	lines  int64    // that have come below all of them
}

// isUnderHeading reports whether a line without a step is about what the heading says: as
// long as one comes below each, and not one for every batch.
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

// learned is what the starts of a program have shown of its lines, by their form: where
// counts begin cannot be seen in the lines of a start that resumes.
type learned struct {
	mu         sync.Mutex
	firstEpoch map[string]int64
	restarts   map[string]bool    // the count of steps begins again, as in each epoch
	through    map[string]bool    // it does not, though the line has an epoch and a total
	values     map[string][]Value // of the first line of a first start
	pace       pace               // of the lines that have their step from a bar
}

func newLearned() *learned {
	return &learned{firstEpoch: map[string]int64{}, restarts: map[string]bool{}, through: map[string]bool{}, values: map[string][]Value{}}
}

// firstOf returns the number of the first epoch. A start resumes in the epoch that has the
// step of its checkpoint, so its first line shows that number, unless the program has not
// resumed.
func (l *learned) firstOf(m *match, base int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, known := l.firstEpoch[m.line.Form]
	resumed := base / max(m.total, 1)
	switch {
	case m.epoch == 0:
		first = 0
	case known:
	case m.epoch == resumed, m.epoch == resumed+1:
		first = m.epoch - resumed
	default:
		first = m.line.FirstEpoch
	}
	l.firstEpoch[m.line.Form] = first
	return first
}

// noteRestart notes that the count of a form has begun again.
func (l *learned) noteRestart(form string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restarts[form] = true
}

// hasRestarted reports whether the count of a form has begun again before.
func (l *learned) hasRestarted(form string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restarts[form]
}

// correct returns the step of a point, by its bar and by the epoch in it.
func (l *learned) correct(step int64, p *Point) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pace.correct(step, p)
}

// noteThrough notes that the count of a form continues over all epochs.
func (l *learned) noteThrough(form string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.through[form] = true
}

// isThrough reports whether the count of a form is known to continue over all epochs.
func (l *learned) isThrough(form string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.through[form]
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

// isFirst reports whether the numbers of a line are those of the first line of a first
// start, as far as that is known. fresh says that this is a first start.
func (l *learned) isFirst(m *match, fresh bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.values[m.line.Form]
	if !ok && fresh {
		l.values[m.line.Form] = m.values
		return true
	}
	return ok && slices.Equal(known, m.values)
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
