// Package coord starts goroutines that belong together, stops them together and
// waits for them: TensorFlow's Coordinator and LooperThread. A [Coordinator]
// owns the goroutines that [Coordinator.Go] starts: its context is the only
// signal to stop, and Join waits for them and names those that do not end.
package coord

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Coordinator starts goroutines, tells them all to stop, and waits for them.
// The zero Coordinator is ready to use.
//
// Any of them may request the stop. The first request decides how the run
// ended: cleanly, or with an error. Later errors are kept after the first one,
// so none is lost.
//
// A Coordinator is safe for concurrent use. It must not be copied after first
// use.
type Coordinator struct {
	// CleanStop lists errors that end a run without failing it, matched by
	// errors.Is. Nil means only ErrOutOfRange; an empty slice means none.
	CleanStop []error
	// Logger receives errors that arrive when nobody waits for them any more.
	// Nil discards them.
	Logger *slog.Logger

	mu      sync.Mutex
	asker   func() (err, cause error) // of the caller's context; may be nil
	ctx     context.Context           // done once a stop was requested; nil before first use
	cancel  context.CancelFunc
	errs    []error // the first cause, then the later ones
	joined  bool
	running map[*routine]struct{}
}

// Context returns the context that every goroutine of the Coordinator gets. It
// is done once a stop was requested.
func (c *Coordinator) Context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contextLocked()
}

// SetLogger sets Logger, also while goroutines run.
func (c *Coordinator) SetLogger(l *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Logger = l
}

// AskedBy sets the context through which the caller of a run may request its
// stop. The returned function undoes that.
func (c *Coordinator) AskedBy(caller context.Context) (end func()) {
	set := func(asker func() (err, cause error)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asker = asker
	}
	set(func() (err, cause error) { return caller.Err(), context.Cause(caller) })
	return func() { set(nil) }
}

// asked returns why the caller's context is done, and the cause that the caller
// gave; nil while it is not. The caller holds c.mu.
func (c *Coordinator) asked() (err, cause error) {
	if c.asker == nil {
		return nil, nil
	}
	return c.asker()
}

func (c *Coordinator) contextLocked() context.Context {
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithCancel(context.Background())
	}
	return c.ctx
}

// Go runs f in its own goroutine. A non-nil error, or a panic, which becomes a
// [*PanicError], asks everything else to stop. Returning nil does not. Join
// waits for f.
func (c *Coordinator) Go(name string, f func(ctx context.Context) error) {
	r := newRoutine(name)
	c.mu.Lock()
	ctx := c.contextLocked()
	if c.running == nil {
		c.running = make(map[*routine]struct{})
	}
	c.running[r] = struct{}{}
	c.mu.Unlock()

	go func() {
		defer c.finish(r)
		// What is in err if f never returns: it called runtime.Goexit.
		var err error = &PanicError{Name: name, Value: ErrGoexit}
		defer func() {
			if err != nil {
				c.RequestStop(err)
			}
		}()
		r.id.Store(goroutineID())
		err = Guard(name, func() error { return f(ctx) })
	}()
}

func (c *Coordinator) finish(r *routine) {
	c.mu.Lock()
	delete(c.running, r)
	c.mu.Unlock()
	close(r.done)
}

// RequestStop asks everything to stop. A nil cause, or one of CleanStop, is a clean end. The first
// call decides whether the run failed; a later error is kept after it. A goroutine that reports its
// cancellation after a stop, or the end of the context that requested the stop, has only obeyed,
// and counts as clean.
func (c *Coordinator) RequestStop(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stopped := c.contextLocked().Err() != nil
	if cause != nil && !c.isClean(cause, stopped) {
		c.errs = append(c.errs, cause)
		if c.joined {
			logging.OrDiscard(c.Logger).Error("error after the stop", "err", cause)
		}
	}
	c.cancel()
}

// EndsCleanly reports whether err is one that ends a run cleanly at this time.
func (c *Coordinator) EndsCleanly(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isClean(err, c.contextLocked().Err() != nil)
}

func (c *Coordinator) isClean(err error, stopped bool) bool {
	asked, cause := c.asked()
	if cause != nil && errors.Is(err, cause) {
		return true
	}
	if (stopped || asked != nil) && (errors.Is(err, context.Canceled) || errors.Is(err, session.ErrCancelled)) {
		return true
	}
	if errors.Is(asked, context.DeadlineExceeded) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, session.ErrDeadlineExceeded)) {
		return true
	}
	clean := c.CleanStop
	if clean == nil {
		clean = []error{session.ErrOutOfRange}
	}
	for _, target := range clean {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// ShouldStop reports whether a stop was requested, by RequestStop or by the end of
// the context that AskedBy names. It notices the latter at once, while Context ends
// a moment later.
func (c *Coordinator) ShouldStop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, _ := c.asked()
	return c.contextLocked().Err() != nil || asked != nil
}

// WaitForStop waits until a stop is requested, or until ctx is done. It
// reports whether a stop was requested.
func (c *Coordinator) WaitForStop(ctx context.Context) bool {
	stop := c.Context()
	select {
	case <-stop.Done():
	case <-ctx.Done():
	}
	return stop.Err() != nil
}

// StopOnError runs f in the calling goroutine. An error or a panic of f asks
// everything to stop, and is returned by Join instead of here.
func (c *Coordinator) StopOnError(name string, f func(ctx context.Context) error) {
	ctx := c.Context()
	if err := Guard(name, func() error { return f(ctx) }); err != nil {
		c.RequestStop(err)
	}
}

// Err returns the run's errors so far, without waiting: the first cause, with
// later errors after it, or nil.
func (c *Coordinator) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// Join waits until every goroutine has returned, or a stop was requested; in
// the latter case it gives them the grace period to end. It never requests the
// stop itself.
//
// It returns the first cause of the stop with the later errors after it, and
// a [*StopError] naming the goroutines that were still running when the grace
// period was over. Join may be called again, and then reports the same causes
// until Clear.
func (c *Coordinator) Join(grace time.Duration) error {
	stop := c.Context()
	for r := c.anyRunning(); r != nil; r = c.anyRunning() {
		select {
		case <-r.done:
			continue
		case <-stop.Done():
		}
		break
	}
	left := c.awaitAll(grace)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined = true
	errs := c.errs
	if len(left) > 0 {
		errs = append(errs[:len(errs):len(errs)], newStopError(grace, left))
		c.running = nil // a second Join does not wait for them again
	}
	return errors.Join(errs...)
}

// awaitAll waits up to grace for all goroutines and returns those still running.
func (c *Coordinator) awaitAll(grace time.Duration) []*routine {
	timer := time.NewTimer(max(grace, 0))
	defer timer.Stop()
	for r := c.anyRunning(); r != nil; r = c.anyRunning() {
		select {
		case <-r.done:
		case <-timer.C:
			return c.allRunning()
		}
	}
	return nil
}

func (c *Coordinator) anyRunning() *routine {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.running {
		return r
	}
	return nil
}

func (c *Coordinator) allRunning() []*routine {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*routine
	for r := range c.running {
		all = append(all, r)
	}
	return all
}

// Clear makes the Coordinator usable for another run: it forgets the stop and
// its causes. Goroutines that still run keep their cancelled context.
func (c *Coordinator) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx != nil && c.ctx.Err() != nil {
		c.ctx, c.cancel = nil, nil
	}
	c.errs, c.joined = nil, false
}
