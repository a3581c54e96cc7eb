package child

import "time"

// Defaults of [Restarts].
const (
	DefaultMaxRestarts   = 10
	DefaultRestartWindow = time.Hour
	DefaultBackoff       = time.Second
	DefaultMaxBackoff    = 5 * time.Minute
)

// Restarts says how often the program is restarted. A zero field means its
// default.
type Restarts struct {
	// Max is the number of failures within Window after which the program is
	// still restarted; negative means never.
	Max    int
	Window time.Duration
	// Backoff is the time from one start to the next, unless the last one got further than all
	// before: then the next comes at once. It doubles, up to MaxBackoff, until a start gets further,
	// but not after a SIGKILL, which comes from elsewhere. On a full disk the pause is at least 10
	// seconds.
	Backoff, MaxBackoff time.Duration
}

func (r Restarts) withDefaults() Restarts {
	if r.Max == 0 {
		r.Max = DefaultMaxRestarts
	}
	r.Max = max(r.Max, 0)
	byDefault := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	byDefault(&r.Window, DefaultRestartWindow)
	byDefault(&r.Backoff, DefaultBackoff)
	byDefault(&r.MaxBackoff, max(DefaultMaxBackoff, r.Backoff))
	return r
}

// budget decides whether and when the program is started again.
type budget struct {
	Restarts                // with defaults
	failures  []time.Time   // within the window
	backoff   time.Duration // of the last start that got no further
	preempted int
}

// fullDiskPause is the shortest pause after a failure on a full disk. Such failures are not
// counted, and a disk may be full for days.
const fullDiskPause = 10 * time.Second

// next handles the end of an unsuccessful start, and returns how long to wait before another, or
// false if there must be no other. progressed says that this one got further than all before.
func (b *budget) next(now time.Time, e *Exit, progressed bool) (pause time.Duration, again bool) {
	pause = max(b.interval(e, progressed)-e.Took, 0)
	switch {
	case e.Cause == Preempted:
		b.preempted++
		return pause, true
	case e.Cause == Diverged: // MaxRewinds bounds it
		return pause, true
	case e.DiskFull:
		return max(pause, fullDiskPause), true
	}
	kept := b.failures[:0]
	for _, t := range b.failures {
		if now.Sub(t) < b.Window {
			kept = append(kept, t)
		}
	}
	b.failures = append(kept, now)
	return pause, e.Cause != Final && len(b.failures) <= b.Max
}

// interval returns the time from one start to the next.
func (b *budget) interval(e *Exit, progressed bool) time.Duration {
	switch {
	case progressed:
		b.backoff = 0 // Max bounds a program that fails after each step
	case e.wasKilled(), e.Cause == Diverged:
		return b.Backoff // a longer one would not help
	case b.backoff == 0:
		b.backoff = b.Backoff
	default:
		b.backoff = min(2*b.backoff, b.MaxBackoff)
	}
	return b.backoff
}
