package recipe

import (
	"slices"
	"sync"
)

// learned is what the starts of a program have shown about its lines, by their form: the lines of a
// start that resumes do not show where counts begin.
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

// noteRestart records that the count of a form has begun again.
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

// noteThrough records that the count of a form continues over all epochs.
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
