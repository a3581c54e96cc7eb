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
	// Backoff is the pause before another start, unless the last one got further
	// than all before: then there is none. It doubles, up to MaxBackoff, until one
	// does.
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
	Restarts              // with defaults
	failures  []time.Time // within the window
	pause     time.Duration
	preempted int
}

// next takes the end of a start that was no success, and returns how long to
// wait before another, or false when there shall be none. progressed says that
// it got further than all before.
func (b *budget) next(now time.Time, cause Cause, progressed bool) (pause time.Duration, again bool) {
	switch {
	case progressed:
		b.pause = 0 // Max bounds a program that fails after each step
	case b.pause == 0:
		b.pause = b.Backoff
	default:
		b.pause = min(2*b.pause, b.MaxBackoff)
	}
	switch cause {
	case Preempted:
		b.preempted++
		return b.pause, true
	case Diverged: // MaxRewinds bounds them
		return b.Backoff, true
	}
	kept := b.failures[:0]
	for _, t := range b.failures {
		if now.Sub(t) < b.Window {
			kept = append(kept, t)
		}
	}
	b.failures = append(kept, now)
	return b.pause, cause != Final && len(b.failures) <= b.Max
}
