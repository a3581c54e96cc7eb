package trainerd

import (
	"context"
	"errors"
	"time"

	"github.com/trainerd/trainerd/trainerd/coord"
)

// SetSaveModelEvery changes SaveModelEvery during a run; zero or less switches it
// off. The next checkpoint is written after that time. The run must have begun
// with SaveModelEvery on.
func (sv *Supervisor) SetSaveModelEvery(d time.Duration) error {
	r := sv.current()
	if r == nil {
		return errNoRun
	}
	if r.checkpoints == nil || !r.checkpoints.isTimed() {
		return errors.New("the run has no checkpoint service whose interval could change: SaveModelEvery was off when it began")
	}
	r.checkpoints.setInterval(max(d, 0))
	if d <= 0 {
		d = -1 // zero is the default
	}
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.SaveModelEvery = d
	return nil
}

// saveModelEvery returns the interval of the checkpoint service, zero for off.
func (sv *Supervisor) saveModelEvery() time.Duration {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return interval(sv.SaveModelEvery, DefaultSaveModelEvery)
}

// Pauses between attempts to save after a failure.
const (
	firstSaveRetry = time.Second
	maxSaveRetry   = 5 * time.Minute
)

// failed counts a failure. It returns a *SaveFailedError when there were too many. A stop is not a
// failure.
func (c *checkpointer) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.stats.saveFailed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	c.pause = min(max(2*c.pause, firstSaveRetry), maxSaveRetry)
	c.retry = time.Now().Add(c.pause)
	if c.maxFailures > 0 && c.failures >= c.maxFailures {
		return &SaveFailedError{Failures: c.failures, Err: err}
	}
	return err
}

// tolerate logs a failure after which the training continues, and returns the
// others.
func (c *checkpointer) tolerate(err error) error {
	var ended *SaveFailedError
	if err == nil || errors.As(err, &ended) || errors.Is(err, context.Canceled) {
		return err
	}
	c.log.Error("save failed; the previous checkpoint stays the current one", "err", err)
	return nil
}

// tick is the checkpoint service's work: one save, tried again with growing pauses, which are never
// longer than the interval. Before each attempt the training has its time.
func (c *checkpointer) tick(ctx context.Context, every time.Duration) error {
	for {
		if !coord.Sleep(ctx, c.untilRested()) {
			return nil
		}
		_, err := c.save(ctx, context.WithoutCancel(ctx), byClock)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if err := c.tolerate(err); err != nil {
			return err
		}
		if !coord.Sleep(ctx, min(c.untilRetry(), every)) {
			return nil
		}
	}
}

// untilRetry returns the rest of the pause after a failed save.
func (c *checkpointer) untilRetry() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.retry)
}

// untilRested returns how much time the training still has before the next save.
func (c *checkpointer) untilRested() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.rest)
}

// serve is the checkpoint service; it starts over when its interval changes.
func (c *checkpointer) serve(ctx context.Context) error {
	for {
		part, cancel := context.WithCancel(ctx)
		c.mu.Lock()
		every := c.every
		c.endPart = cancel
		c.mu.Unlock()
		err := c.serveEvery(part, every)
		cancel()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// setInterval sets the interval of serve.
func (c *checkpointer) setInterval(every time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.every, c.timed = every, true
	if c.endPart != nil {
		c.endPart()
	}
}

// isTimed reports whether serve runs, or is about to.
func (c *checkpointer) isTimed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timed
}

// serveEvery saves until ctx is done: the first save comes after the first pause. Without a
// budget the saves keep to their grid; without an interval there are none.
func (c *checkpointer) serveEvery(ctx context.Context, every time.Duration) error {
	if every <= 0 && c.budget.MaxRisk <= 0 {
		<-ctx.Done()
		return nil
	}
	if c.budget == (SaveBudget{}) {
		if !coord.Sleep(ctx, every) {
			return nil
		}
		loop := &coord.Loop{Interval: every, Func: func(ctx context.Context) error { return c.tick(ctx, every) }}
		return loop.Serve(ctx)
	}
	for {
		pause, wait := c.nextPause(every)
		if !coord.Sleep(ctx, wait) {
			return nil
		}
		if err := c.tick(ctx, pause); err != nil {
			return err
		}
	}
}

// nextPause returns the time between the beginnings of two saves, and the rest of it. If nothing
// was new at the last save, the pause begins again: a step may take longer than that.
func (c *checkpointer) nextPause(every time.Duration) (pause, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause = c.budget.Pause(every, c.saved.Took)
	since := c.begun
	if c.safe.After(since) {
		since = c.safe
	}
	return pause, pause - time.Since(since)
}
