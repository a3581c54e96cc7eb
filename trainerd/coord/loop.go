package coord

import (
	"context"
	"time"
)

// Service is something that runs during the training. Serve returns nil once
// ctx is done; anything else is a failure that ends the run.
type Service interface {
	Serve(ctx context.Context) error
}

// ServiceFunc is a function used as a [Service].
type ServiceFunc func(ctx context.Context) error

// Serve calls f.
func (f ServiceFunc) Serve(ctx context.Context) error { return f(ctx) }

// Loop is a Service that calls Func on a timer: at once, and then at fixed
// intervals from the first call, so that it does not drift. It uses the
// monotonic clock, so a change of the system's time does not affect it.
//
// When a call takes longer than Interval, the calls missed meanwhile become one
// that follows at once; then the loop is back on its grid. TensorFlow's
// LooperThread makes up for each missed call in a burst instead, which for a
// checkpoint or a summary would write the same thing several times.
type Loop struct {
	// Interval between the starts of two calls. Zero or less means one call
	// right after another.
	Interval time.Duration
	// Start, if not nil, is called once before the first call of Func.
	Start func(ctx context.Context) error
	// Func is the work. Its error ends the loop.
	Func func(ctx context.Context) error
	// Stop, if not nil, is called once when the loop ends because ctx is done,
	// not after an error. Its context is the loop's, and so is done already.
	Stop func(ctx context.Context) error
}

// Serve runs the loop in the calling goroutine until ctx is done.
func (l *Loop) Serve(ctx context.Context) error {
	if l.Start != nil && ctx.Err() == nil {
		if err := l.Start(ctx); err != nil {
			return err
		}
	}
	if err := l.repeat(ctx); err != nil {
		return err
	}
	if l.Stop != nil {
		return l.Stop(ctx)
	}
	return nil
}

func (l *Loop) repeat(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now()
	for waitTimer(ctx, timer) {
		if err := l.Func(ctx); err != nil {
			return err
		}
		now := time.Now()
		next = nextTick(next, now, l.Interval)
		timer.Reset(next.Sub(now))
	}
	return nil
}

// waitTimer reports whether the timer fired before ctx was done. A stop wins
// over a timer that is due at the same moment.
func waitTimer(ctx context.Context, timer *time.Timer) bool {
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// nextTick returns when to call again after the call that was due at last has
// ended at now: the next point of the grid, or the latest missed one.
func nextTick(last, now time.Time, interval time.Duration) time.Time {
	if interval <= 0 {
		return now
	}
	next := last.Add(interval)
	if missed := now.Sub(next) / interval; missed > 0 {
		next = next.Add(missed * interval)
	}
	return next
}

// Sleep waits for d or until ctx is done, and reports whether d has passed.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	return waitTimer(ctx, timer)
}
