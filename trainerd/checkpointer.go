package trainerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// SavedCheckpoint is a checkpoint that is durable.
type SavedCheckpoint struct {
	Step   int64 // NoStep when the model does not count steps
	Prefix string
	Time   time.Time     // when it became durable
	Took   time.Duration // from the copy of the variables to the last sync
}

// Pauses between attempts to save after a failure.
const (
	firstSaveRetry = time.Second
	maxSaveRetry   = 5 * time.Minute
	finalAttempts  = 3
)

// checkpointer writes the checkpoints of one run, one at a time.
type checkpointer struct {
	saver       *Saver
	sess        Session
	path        string // without the step number
	globalStep  string
	events      *eventLog // nil for none
	maxFailures int       // in a row; 0 means without limit
	onSave      func(SavedCheckpoint)
	log         *slog.Logger

	// busy has room for one: whoever fills it may save, from the copy of the
	// variables until they are durable.
	busy chan struct{}

	mu       sync.Mutex
	saved    SavedCheckpoint
	hasSaved bool
	// inForce is the step that the newest checkpoint has, restored or saved.
	inForce  int64
	failures int
}

func (sv *Supervisor) makeCheckpointer(r *run, step int64) {
	if sv.Logdir == "" || r.plan.saver == nil {
		return
	}
	c := &checkpointer{
		saver:      r.plan.saver,
		sess:       r.sess,
		path:       sv.SavePath(),
		globalStep: r.plan.globalStep,
		events:     r.events,
		onSave:     sv.OnSave,
		log:        sv.log(),
		busy:       make(chan struct{}, 1),
		inForce:    NoStep,
	}
	c.maxFailures = sv.MaxSaveFailures
	if c.maxFailures == 0 {
		c.maxFailures = DefaultMaxSaveFailures
	}
	if r.prepared.Restored != "" {
		c.inForce = step
	}
	r.checkpoints = c
}

// saves reports whether the run is to have checkpoints by itself.
func (sv *Supervisor) saves() bool {
	return sv.SaveModelSteps > 0 || interval(sv.SaveModelEvery, DefaultSaveModelEvery) > 0
}

func (c *checkpointer) lastSaved() (SavedCheckpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saved, c.hasSaved
}

func (c *checkpointer) acquire(ctx context.Context) error {
	select {
	case c.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *checkpointer) release() { <-c.busy }

// await returns when no save is under way.
func (c *checkpointer) await() {
	c.busy <- struct{}{}
	<-c.busy
}

// save writes a checkpoint, unless the step has one.
func (c *checkpointer) save(ctx context.Context) (SavedCheckpoint, error) {
	if err := c.acquire(ctx); err != nil {
		return SavedCheckpoint{}, err
	}
	defer c.release()
	started := time.Now()
	cut, err := c.saver.Cut(ctx, c.sess, c.globalStep)
	if err != nil {
		return SavedCheckpoint{}, c.failed(ctx, err)
	}
	return c.write(ctx, cut, started)
}

// saveInBackground copies the variables at once, and writes them in a goroutine
// of the coordinator. An error ends the run only when too many came in a row.
func (c *checkpointer) saveInBackground(ctx context.Context, coord *Coordinator) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	started := time.Now()
	cut, err := c.saver.Cut(ctx, c.sess, c.globalStep)
	if err != nil {
		c.release()
		return c.tolerate(c.failed(ctx, err))
	}
	if cut.tensors == nil {
		// The session saves itself: it has to be at the end of a step.
		defer c.release()
		_, err := c.write(ctx, cut, started)
		return c.tolerate(err)
	}
	coord.Go("checkpoint", func(ctx context.Context) error {
		defer c.release()
		_, err := c.write(ctx, cut, started)
		return c.tolerate(err)
	})
	return nil
}

// write makes a cut durable. A stop does not interrupt it. The caller holds
// busy.
func (c *checkpointer) write(ctx context.Context, cut *Cut, started time.Time) (SavedCheckpoint, error) {
	ctx = context.WithoutCancel(ctx)
	if c.isInForce(cut.Step) {
		saved, _ := c.lastSaved()
		return saved, nil
	}
	c.flushEvents(ctx)
	prefix, err := c.saver.Write(ctx, cut, c.path, cut.Step)
	if err != nil {
		return SavedCheckpoint{}, c.failed(ctx, err)
	}
	saved := SavedCheckpoint{Step: cut.Step, Prefix: prefix, Time: time.Now(), Took: time.Since(started)}
	c.mu.Lock()
	c.saved, c.hasSaved, c.inForce, c.failures = saved, true, cut.Step, 0
	c.mu.Unlock()
	c.announce(ctx, saved)
	return saved, nil
}

// flushEvents writes out the points of the steps that the checkpoint will hold,
// before it comes into force. A run that is killed after that goes on behind
// these steps, so nothing else would bring the points back.
func (c *checkpointer) flushEvents(ctx context.Context) {
	if c.events == nil {
		return
	}
	if err := c.events.flush(ctx); err != nil {
		c.log.Error("events could not be written before the checkpoint", "err", err)
	}
}

func (c *checkpointer) isInForce(step int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return step >= 0 && step == c.inForce
}

// announce tells of a checkpoint. It is durable by now, so what goes wrong here
// is no failure of the save.
func (c *checkpointer) announce(ctx context.Context, saved SavedCheckpoint) {
	if saved.Step >= 0 {
		c.log.Info("saved", "step", saved.Step, "checkpoint", saved.Prefix, "took", saved.Took)
	} else {
		c.log.Info("saved", "checkpoint", saved.Prefix, "took", saved.Took)
	}
	if c.events != nil && saved.Step >= 0 {
		if err := c.events.addCheckpoint(ctx, c.path, saved.Step); err != nil {
			c.log.Error("checkpoint could not be entered in the events file", "err", err)
		}
	}
	if c.onSave != nil {
		c.onSave(saved)
	}
}

// SaveFailedError says that so many saves failed in a row that the run was
// ended. The last checkpoint that was written stays in force.
type SaveFailedError struct {
	Failures int
	Err      error // of the last attempt
}

func (e *SaveFailedError) Error() string {
	return fmt.Sprintf("%d saves failed in a row, the last with: %v", e.Failures, e.Err)
}

func (e *SaveFailedError) Unwrap() error { return e.Err }

// failed counts a failure. It returns a *SaveFailedError when there were too
// many. To be stopped is no failure.
func (c *checkpointer) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.maxFailures > 0 && c.failures >= c.maxFailures {
		return &SaveFailedError{Failures: c.failures, Err: err}
	}
	return err
}

// tolerate logs a failure after which the training goes on, and returns the
// others.
func (c *checkpointer) tolerate(err error) error {
	var ended *SaveFailedError
	if err == nil || errors.As(err, &ended) || errors.Is(err, context.Canceled) {
		return err
	}
	c.log.Error("save failed; the checkpoint before it stays in force", "err", err)
	return nil
}

// tick is the checkpoint service's work: one save, tried again with growing
// pauses, which are never longer than the interval.
func (c *checkpointer) tick(ctx context.Context, every time.Duration) error {
	pause := firstSaveRetry
	for {
		_, err := c.save(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if err := c.tolerate(err); err != nil {
			return err
		}
		if !sleep(ctx, min(pause, every)) {
			return nil
		}
		pause = min(2*pause, maxSaveRetry)
	}
}

// saveFinal writes the last checkpoint of a run. It tries more than once, for
// there is no later tick.
func (c *checkpointer) saveFinal() error {
	ctx := context.Background()
	pause := firstSaveRetry
	for attempt := 1; ; attempt++ {
		_, err := c.save(ctx)
		if err == nil || attempt == finalAttempts {
			return err
		}
		c.log.Error("final save failed; trying again", "err", err)
		sleep(ctx, pause)
		pause *= 2
	}
}
