package trainerd

import (
	"sync"
	"time"

	"github.com/trainerd/trainerd/trainerd/report"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Stats are counts of the current call of Run, over all its sessions.
type Stats struct {
	// Stalled is how long the training has waited for saves, LongestStall the
	// longest single wait.
	Stalled, LongestStall time.Duration
	FailedSaves           int
	SkippedSaves          int // because of the SaveBudget
	Restarts              int // of sessions that were lost
	Rewinds               int
	// EventsDropped counts the events that could not be written, or that the
	// writer's Overflow policy has dropped, in the current session.
	EventsDropped int64
	// EventsQueued is the number of bytes of events waiting to be written.
	EventsQueued int64
}

// Stats returns the counts up to now. It may be called at any time.
func (sv *Supervisor) Stats() Stats {
	var s Stats
	sv.stats.update(func(a *runCounts) {
		s = Stats{
			Stalled: a.stalled, LongestStall: a.longestStall, FailedSaves: a.failedSaves, SkippedSaves: a.skippedSaves,
			Restarts: a.restarts, Rewinds: a.rewinds,
		}
	})
	if r := sv.current(); r != nil && r.writer != nil {
		s.EventsDropped = r.events.Dropped() + r.writer.Dropped()
		s.EventsQueued = r.writer.Queued()
	}
	return s
}

// runStats keeps the figures of a call of Run, over all its sessions, for the
// report. Without Run it keeps those of one session.
type runStats struct {
	mu     sync.Mutex
	isOpen bool // between open and close, a new session does not start over
	a      runCounts
	phase  *time.Duration // that counts now, nil for none
	since  time.Time
}

// runCounts are what is counted for the report.
type runCounts struct {
	begun                                   time.Time
	preparing, training, stopping, replaced time.Duration
	stalled, longestStall                   time.Duration
	firstStep, lastStep                     int64
	stepsDone, stepsAgain                   int64
	saves, failedSaves, skippedSaves        int
	saving, longestSave                     time.Duration
	restarts, rewinds                       int
	restored                                string
	damaged                                 []string
	outcome, stoppedBy, failure             string
}

// open begins the counts of a call of Run.
func (l *runStats) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOpen = true
	l.reset()
}

func (l *runStats) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isOpen = false
}

func (l *runStats) reset() {
	l.a = runCounts{begun: time.Now(), firstStep: session.NoStep, lastStep: session.NoStep, outcome: report.Running}
	l.phase = nil
}

// enter ends a phase and begins another. The caller holds the lock.
func (l *runStats) enter(phase *time.Duration) {
	now := time.Now()
	if l.phase != nil {
		*l.phase += now.Sub(l.since)
	}
	l.phase, l.since = phase, now
}

func (l *runStats) update(f func(a *runCounts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.a)
}

// preparing begins a session.
func (l *runStats) preparing() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isOpen {
		l.reset()
	}
	l.a.outcome, l.a.stoppedBy, l.a.failure = report.Running, "", ""
	l.enter(&l.a.preparing)
}

// prepared records how a session begins.
func (l *runStats) prepared(p *Prepared, step int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(&l.a.training) // without Run there is no other sign of its beginning
	if l.a.firstStep == session.NoStep {
		l.a.firstStep = step
		l.a.restored = p.Restored
	} else if l.a.lastStep > step {
		l.a.stepsAgain += l.a.lastStep - step
	}
	l.a.lastStep = step
	for _, d := range p.Damaged {
		l.a.damaged = append(l.a.damaged, d.Prefix)
	}
}

func (l *runStats) training() { l.begin(&l.a.training) }
func (l *runStats) stopping() { l.begin(&l.a.stopping) }

func (l *runStats) begin(phase *time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(phase)
}

func (l *runStats) restarting() {
	l.update(func(a *runCounts) { a.restarts++ })
	l.begin(&l.a.replaced)
}

func (l *runStats) rewinding() {
	l.update(func(a *runCounts) { a.rewinds++ })
	l.begin(&l.a.replaced)
}

// stopped records who requested the end of the training.
func (l *runStats) stopped(by string) {
	l.update(func(a *runCounts) { a.outcome, a.stoppedBy = report.Stopped, by })
}

// closed records how a session ended.
func (l *runStats) closed(err error) {
	l.update(func(a *runCounts) {
		switch {
		case err != nil:
			a.outcome, a.failure = report.Failed, err.Error()
		case a.outcome == report.Running:
			a.outcome = report.Completed
		}
	})
}

// ended records which step a session reached.
func (l *runStats) ended(step int64) {
	l.update(func(a *runCounts) {
		if step > a.lastStep {
			a.stepsDone += step - a.lastStep
			a.lastStep = step
		}
	})
}

func (l *runStats) stalled(d time.Duration) {
	l.update(func(a *runCounts) {
		a.stalled += d
		a.longestStall = max(a.longestStall, d)
	})
}

func (l *runStats) saved(took time.Duration) {
	l.update(func(a *runCounts) {
		a.saves++
		a.saving += took
		a.longestSave = max(a.longestSave, took)
	})
}

func (l *runStats) saveFailed()  { l.update(func(a *runCounts) { a.failedSaves++ }) }
func (l *runStats) saveSkipped() { l.update(func(a *runCounts) { a.skippedSaves++ }) }

// longestSave returns how long the slowest save took.
func (l *runStats) longestSave() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.a.longestSave
}

// read returns the counts up to this moment.
func (l *runStats) read() runCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(l.phase)
	return l.a
}
