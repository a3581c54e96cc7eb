package trainerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/session"
)

// LastSave returns the newest checkpoint that this run has written.
func (sv *Supervisor) LastSave() (saved SavedCheckpoint, ok bool) {
	r := sv.current()
	if r == nil || r.checkpoints == nil {
		return SavedCheckpoint{}, false
	}
	return r.checkpoints.lastSaved()
}

// Save writes a checkpoint now and returns when it is durable. If the session knows
// that no variable has changed since the current checkpoint, it writes none, and
// returns that one; see [session.ChangeTracker] and [Supervisor.ForceSave].
func (sv *Supervisor) Save(ctx context.Context) (SavedCheckpoint, error) {
	return sv.saveNow(ctx, false)
}

// ForceSave is like Save, but always writes a checkpoint. One of the same step
// is replaced.
func (sv *Supervisor) ForceSave(ctx context.Context) (SavedCheckpoint, error) {
	return sv.saveNow(ctx, true)
}

func (sv *Supervisor) saveNow(ctx context.Context, force bool) (SavedCheckpoint, error) {
	r := sv.current()
	switch {
	case r == nil:
		return SavedCheckpoint{}, errNoRun
	case r.ended.Load():
		return SavedCheckpoint{}, errRunEnded
	}
	if r.checkpoints == nil {
		return SavedCheckpoint{}, errors.New("the supervisor saves no checkpoints: it has no logdir, no saver, or is not the chief")
	}
	defer r.stalled(time.Now())
	return r.checkpoints.saveWithin(ctx, context.WithoutCancel(ctx), force)
}

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
	sv.interval.Lock()
	defer sv.interval.Unlock()
	sv.SaveModelEvery = d
	return nil
}

// saveModelEvery returns the interval of the checkpoint service, zero for off.
func (sv *Supervisor) saveModelEvery() time.Duration {
	sv.interval.Lock()
	defer sv.interval.Unlock()
	return interval(sv.SaveModelEvery, DefaultSaveModelEvery)
}

// SavePath returns the path of the checkpoints without their step number, or
// "" when there are none.
func (sv *Supervisor) SavePath() string {
	if sv.Logdir == "" || sv.NonChief {
		return ""
	}
	base := sv.CheckpointBasename
	if base == "" {
		base = DefaultCheckpointBasename
	}
	return filepath.Join(sv.Logdir, base)
}

// SavedCheckpoint is a durable checkpoint.
type SavedCheckpoint struct {
	Step   int64 // NoStep if the model does not count steps
	Prefix string
	Time   time.Time     // when it became durable
	Took   time.Duration // from the copy of the variables to the last sync
}

// errRunEnded is what methods return that would write to a logdir that may be
// another's by now.
var errRunEnded = errors.New("the run has ended; nothing is saved any more")

// SaveBudget limits the time spent saving and the time that a crash may cost.
// If it cannot meet both limits, the second wins: a save is made. But before a
// save by the clock the training has had at least as long for its steps as they
// had to wait for the last save.
type SaveBudget struct {
	// MaxShare is the largest share of the time that may be spent writing
	// checkpoints, such as 0.05 for a twentieth. Zero means no limit.
	MaxShare float64
	// MaxRisk is the most working time that a crash may lose: from the state in
	// the current checkpoint until the next one becomes current. Zero means no
	// limit. It applies even if SaveModelEvery is off. If saves take too long for
	// it, the log says so once.
	MaxRisk time.Duration
}

// Pause returns the time between the starts of two saves: every, if that is
// positive, made longer or shorter by the limits. took is the duration of a
// save. Zero means that no save is required.
func (b SaveBudget) Pause(every, took time.Duration) time.Duration {
	pause := max(every, 0)
	if b.MaxShare > 0 && pause > 0 {
		pause = max(pause, b.spacing(took))
	}
	if b.MaxRisk > 0 {
		risk := max(b.MaxRisk-took, took)
		if pause == 0 || risk < pause {
			pause = risk
		}
	}
	return pause
}

// spacing returns how far apart saves have to be for MaxShare.
func (b SaveBudget) spacing(took time.Duration) time.Duration {
	if b.MaxShare <= 0 {
		return 0
	}
	return time.Duration(min(float64(took)/b.MaxShare, 1<<62))
}

// Allows reports whether a save may begin now, given how long ago the previous
// one began.
func (b SaveBudget) Allows(since, took time.Duration) bool {
	return since >= b.spacing(took) || b.MaxRisk > 0 && since >= b.MaxRisk-took
}

// WithoutSaves calls f while no snapshot of the run is taken: a save that
// becomes due, or is requested, meanwhile waits until f returns, and one that is
// being written continues. So f's measurements of the model are known when a
// checkpoint of its step is made. A nested call with f's context is part of it.
// f must not save with the Supervisor, which would wait for f to end.
func (sv *Supervisor) WithoutSaves(ctx context.Context, f func(ctx context.Context) error) error {
	r := sv.current()
	if r == nil || r.checkpoints == nil {
		return f(ctx)
	}
	return r.checkpoints.without(ctx, f)
}

// without calls f while c cuts nothing.
func (c *checkpointer) without(ctx context.Context, f func(ctx context.Context) error) error {
	if ctx.Value(inSaveKey{}) == c || ctx.Value(quietKey{}) == c {
		return f(ctx)
	}
	if err := c.cutting.acquire(ctx); err != nil {
		return err
	}
	defer c.cutting.release()
	return f(context.WithValue(ctx, quietKey{}, c))
}

type quietKey struct{}

// turn has room for one: a lock that a context can end the waiting for.
type turn chan struct{}

func (t turn) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	default:
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) release() { <-t }

// CheckpointListener is notified of the saves of a run, from the goroutine that
// saves: that of the training, of the checkpoint service or of the stop. It cannot
// save itself: calling Supervisor.Save with its context is an error.
type CheckpointListener interface {
	// BeforeSave is called before the variables are copied. If it fails, the
	// save fails.
	BeforeSave(ctx context.Context, s session.Session) error
	// AfterSave is called when the checkpoint is durable. ErrOutOfRange ends
	// the run cleanly; any other error fails it.
	AfterSave(ctx context.Context, saved SavedCheckpoint) error
}

// ListenerFuncs is a CheckpointListener made of functions. Nil functions do
// nothing.
type ListenerFuncs struct {
	BeforeSaveFunc func(ctx context.Context, s session.Session) error
	AfterSaveFunc  func(ctx context.Context, saved SavedCheckpoint) error
}

// BeforeSave calls BeforeSaveFunc.
func (l ListenerFuncs) BeforeSave(ctx context.Context, s session.Session) error {
	if l.BeforeSaveFunc == nil {
		return nil
	}
	return l.BeforeSaveFunc(ctx, s)
}

// AfterSave calls AfterSaveFunc.
func (l ListenerFuncs) AfterSave(ctx context.Context, saved SavedCheckpoint) error {
	if l.AfterSaveFunc == nil {
		return nil
	}
	return l.AfterSaveFunc(ctx, saved)
}

// SaveFailedError says that the run was ended because too many saves failed in
// a row. The last written checkpoint stays current.
type SaveFailedError struct {
	Failures int
	Err      error // of the last attempt
}

func (e *SaveFailedError) Error() string {
	return fmt.Sprintf("%d saves failed in a row, the last with: %v", e.Failures, e.Err)
}

func (e *SaveFailedError) Unwrap() error { return e.Err }

// Pauses between attempts to save after a failure.
const (
	firstSaveRetry = time.Second
	maxSaveRetry   = 5 * time.Minute
)

// failed counts a failure. It returns a *SaveFailedError when there were too
// many. To be stopped is not a failure.
func (c *checkpointer) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.stats.saveFailed()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
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

// LeastRisk returns the smallest MaxRisk that can be kept if a save takes took, and
// steps have to wait for held of that. It reports whether b's can.
func (b SaveBudget) LeastRisk(took, held time.Duration) (least time.Duration, kept bool) {
	least = 2*took - held // from a save to the end of the next, which begins as soon as it may
	return least, b.MaxRisk <= 0 || b.MaxRisk >= least
}

// warnRisk reports, once, that a crash may lose more than it should.
func (c *checkpointer) warnRisk(took, held time.Duration) {
	least, kept := c.budget.LeastRisk(took, held)
	if kept || c.riskTold.Swap(true) {
		return
	}
	c.log.Warn("saves take so long that a crash may lose more work than the limit allows; raise the limit, save less, or use a faster disk",
		"limit", c.budget.MaxRisk, "at_risk", least, "save_took", took)
}

// tick is the checkpoint service's work: one save, tried again with growing
// pauses, which are never longer than the interval. The training has its time
// before each.
func (c *checkpointer) tick(ctx context.Context, every time.Duration) error {
	pause := firstSaveRetry
	for {
		if !coord.Sleep(ctx, c.untilRested()) {
			return nil
		}
		_, err := c.save(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if err := c.tolerate(err); err != nil {
			return err
		}
		if !coord.Sleep(ctx, min(pause, every)) {
			return nil
		}
		pause = min(2*pause, maxSaveRetry)
	}
}

// untilRested returns how long the training still has for itself.
func (c *checkpointer) untilRested() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.rest)
}

// serve is the checkpoint service, which begins again when its interval changes.
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

// serveEvery saves until ctx is done: the first save comes after the first
// pause. Without a budget the saves keep to their grid, and no interval is no
// save.
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

// nextPause returns the time between the beginnings of two saves, and what is
// left of it. Where nothing was new it begins again: a step may take longer.
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
