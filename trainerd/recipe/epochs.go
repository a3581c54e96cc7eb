package recipe

import "sync"

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
