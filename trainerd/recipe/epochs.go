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
	restarts   map[string]bool // the count of steps begins again, as in each epoch
}

func newLearned() *learned {
	return &learned{firstEpoch: map[string]int64{}, restarts: map[string]bool{}}
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
