package trainerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/ctxmutex"
	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/session"
)

// checkpointer writes the checkpoints of one run, one at a time.
type checkpointer struct {
	saver       *checkpoint.Saver
	sess        session.Session
	path        string       // without the step number
	home        *logdirWatch // where that is by now
	globalStep  string
	events      *eventlog.Log // nil for none
	maxFailures int           // in a row; 0 means without limit
	onSave      func(SavedCheckpoint)
	listeners   []CheckpointListener
	flush       func(ctx context.Context, s session.Session) // may be nil
	budget      SaveBudget
	stepsDone   func() int64 // as reported by StepDone
	points      *points
	metrics     *metrics
	stats       *runStats
	coord       *coord.Coordinator // of the run, for what a listener asks for
	log         *slog.Logger

	// busy has room for one: the goroutine that fills it may save, from the copy of the variables
	// until they are durable.
	busy    chan struct{}
	held    time.Duration  // guarded by busy: how long steps had to wait for the save under way
	cutting ctxmutex.Mutex // of the copy alone; see Supervisor.WithoutSaves

	// riskTold is set once the log says that MaxRisk cannot be kept.
	riskTold *atomic.Bool

	// staleStep warns, once, if the training does not increase its global step.
	staleStep *staleStep

	mu       sync.Mutex
	saved    SavedCheckpoint
	hasSaved bool
	// current is the newest checkpoint, restored or saved, and values is what it
	// holds. Both are zero before there is one.
	current  SavedCheckpoint
	values   *checkpoint.Values
	failures int
	pause    time.Duration      // after the last of these failures; zero for none
	retry    time.Time          // when that pause ends
	begun    time.Time          // of the newest save
	asking   bool               // a save waits for the session
	answered time.Time          // when the session has answered last
	rest     time.Time          // until then the training has its time for steps
	safe     time.Time          // when the current checkpoint was last found to hold everything
	every    time.Duration      // of serve
	timed    bool               // serve runs, or is about to
	endPart  context.CancelFunc // has serve look at every again; nil before it runs
}

// checkSaver finds mistakes that would make every save of the run fail. A graph without
// variables has no Saver by default, and needs none.
func (sv *Supervisor) checkSaver(ctx context.Context, r *run, step int64) error {
	saver := r.plan.saver
	if sv.Logdir == "" || saver == nil {
		return nil
	}
	err := saver.CheckPath(sv.SavePath(), step)
	if err == nil {
		err = saver.Check(ctx, r.sess)
	}
	if errors.Is(err, checkpoint.ErrNoVariables) && sv.Saver == nil {
		r.plan.saver = nil
		return nil
	}
	return err
}

func (sv *Supervisor) makeCheckpointer(r *run, step int64) {
	if sv.Logdir == "" || r.plan.saver == nil {
		return
	}
	c := &checkpointer{
		saver:      r.plan.saver,
		sess:       r.sess,
		path:       sv.SavePath(),
		home:       r.home,
		globalStep: r.plan.globalStep,
		events:     r.events,
		onSave:     sv.OnSave,
		listeners:  sv.Listeners,
		flush:      sv.FlushSummaries,
		budget:     sv.SaveBudget,
		stepsDone:  r.stepsDone.Load,
		points:     &r.points,
		metrics:    &r.metrics,
		stats:      &sv.stats,
		coord:      &sv.coord,
		begun:      time.Now(),
		log:        sv.log(),
		riskTold:   &sv.riskTold,
		staleStep:  &r.staleStep,
		busy:       make(chan struct{}, 1),
		current:    SavedCheckpoint{Step: session.NoStep},
	}
	c.maxFailures = sv.MaxSaveFailures
	if c.maxFailures == 0 {
		c.maxFailures = DefaultMaxSaveFailures
	}
	if r.prepared.Restored != "" && sv.inLogdir(r.prepared.Restored) {
		c.current = SavedCheckpoint{Step: step, Prefix: r.prepared.Restored}
		if r.plan.saver.OwnFormat(r.prepared.Restored) {
			c.values = r.prepared.values // else the run writes it in its own format
		}
	}
	r.checkpoints = c
}

// saves reports whether the run writes checkpoints without being asked.
func (sv *Supervisor) saves() bool {
	return sv.SaveModelSteps > 0 || sv.SaveBudget.MaxRisk > 0 || sv.saveModelEvery() > 0
}

func (c *checkpointer) lastSaved() (SavedCheckpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saved, c.hasSaved
}

func (c *checkpointer) acquire(ctx context.Context) error {
	if ctx.Value(inSaveKey{}) == c {
		return errors.New("a listener of a save cannot save: it would wait for itself")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // whether or not there is room
	}
	select {
	case c.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release ends a save. Before the next timed save the training gets as much time as this one has
// cost it.
func (c *checkpointer) release() {
	c.mu.Lock()
	c.rest, c.held = time.Now().Add(c.held), 0
	c.mu.Unlock()
	<-c.busy
}

type inSaveKey struct{}

// inSave marks the context of a listener that is called within a save.
func (c *checkpointer) inSave(ctx context.Context) context.Context {
	return context.WithValue(ctx, inSaveKey{}, c)
}

// saveReason is why a save is made.
type saveReason int

const (
	// byClock: the save waits for the points of a step that may just have ended.
	byClock saveReason = iota
	// requested: maybe by the training itself, which writes nothing until it has returned.
	requested
	// forced: requested, even if nothing has changed.
	forced
)

// save writes a checkpoint, unless the current one holds the variables' present values. The writing
// has its own context, because a stop does not interrupt it.
func (c *checkpointer) save(ctx, writing context.Context, why saveReason) (SavedCheckpoint, error) {
	if why != byClock {
		c.points.begin()
	}
	if err := c.acquire(ctx); err != nil {
		return SavedCheckpoint{}, err
	}
	defer c.release()
	known := checkpoint.Unknown
	if why != forced {
		if known = c.compare(ctx); known == checkpoint.Unchanged {
			return c.stillCurrent(), nil
		}
	}
	begun := c.points.begun.Load()
	cut, started, err := c.cut(ctx, known)
	if err != nil {
		return SavedCheckpoint{}, c.failed(ctx, err)
	}
	if why == byClock {
		started = started.Add(c.awaitPoints(writing, cut, begun))
	}
	return c.write(writing, cut, started)
}

// awaitPoints waits for the points of a cut's step, and returns for how long. begun is what
// points.begun was before the cut.
func (c *checkpointer) awaitPoints(ctx context.Context, cut *checkpoint.Snapshot, begun int64) time.Duration {
	if !cut.HoldsSteps() {
		begun = c.points.begun.Load() // a call that waited for the cut continues
	}
	now := time.Now()
	c.points.await(ctx, cut.Step, begun)
	return time.Since(now)
}

// stillCurrent returns the current checkpoint, which holds everything that a crash could lose at
// this moment.
func (c *checkpointer) stillCurrent() SavedCheckpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.safe = time.Now()
	return c.current
}

// newest returns the current checkpoint and the values in it.
func (c *checkpointer) newest() (SavedCheckpoint, *checkpoint.Values) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current, c.values
}

// compare compares the values in the current checkpoint with the variables' present values. The
// step alone decides nothing: the training may leave it unchanged, or set it back. A checkpoint
// that is gone holds nothing.
func (c *checkpointer) compare(ctx context.Context) checkpoint.Comparison {
	current, values := c.newest()
	if current.Prefix == "" || values == nil || !layout.Exists(current.Prefix) {
		return checkpoint.Unknown
	}
	defer c.ask()()
	if values.Tracks() {
		return values.Compare(ctx)
	}
	// A different step makes it unnecessary to copy the variables for a
	// comparison.
	if step, err := session.ReadStep(ctx, c.sess, c.globalStep); err != nil || step != current.Step {
		return checkpoint.Unknown
	}
	defer c.holdSince(time.Now())
	return values.Compare(ctx)
}

// ask notes that a save waits for the session, until answered is called.
func (c *checkpointer) ask() (answered func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asking, c.answered = false, time.Now()
	}
}

// holdSince records that steps have had to wait for the save in progress.
func (c *checkpointer) holdSince(t time.Time) { c.held += time.Since(t) }

// cut takes a snapshot of the session. The caller holds busy, and passes the result of comparing
// the variables with the current checkpoint.
func (c *checkpointer) cut(ctx context.Context, known checkpoint.Comparison) (*checkpoint.Snapshot, time.Time, error) {
	if err := c.cutting.Lock(ctx); err != nil {
		return nil, time.Now(), err
	}
	defer c.cutting.Unlock()
	started := time.Now()
	if _, err := c.savePath(); err != nil {
		return nil, started, err
	}
	c.mu.Lock()
	c.begun = started
	c.mu.Unlock()
	for _, l := range c.listeners {
		if err := l.BeforeSave(c.inSave(ctx), c.sess); err != nil {
			return nil, started, fmt.Errorf("listener: %w", err)
		}
	}
	asked, done := time.Now(), c.stepsDone() // before the step is read, which takes a while on servers
	answered := c.ask()
	cut, err := c.saver.Snapshot(ctx, c.sess, c.globalStep)
	answered()
	if err != nil {
		c.holdSince(asked)
		return nil, started, err
	}
	cut.Asking = c.ask
	cut.DirExists = true // or the lock would not be in the logdir that is made
	c.metrics.enter(cut)
	if current, _ := c.newest(); cut.Step >= 0 && (cut.Step == current.Step && known == checkpoint.Changed || cut.Step < done) {
		c.staleStep.warn(c.log, cut.Step)
	}
	return cut, started, nil
}

// affordable reports whether the budget allows a save now, and the pause after a failed one is
// over: with quick steps the next save may be due while the disk is still full.
func (c *checkpointer) affordable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.retry) {
		return false
	}
	if !c.hasSaved || c.budget.Allows(time.Since(c.begun), c.saved.Took) {
		return true
	}
	c.stats.saveSkipped()
	return false
}

// saveInBackground copies the variables at once, and writes them in a goroutine of the coordinator.
// An error ends the run only after too many in a row.
func (c *checkpointer) saveInBackground(ctx context.Context, coord *coord.Coordinator) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	handedOver := false
	defer func() {
		if !handedOver { // also where a listener or the session has panicked
			c.release()
		}
	}()
	known := c.compare(ctx)
	if known == checkpoint.Unchanged {
		return nil
	}
	cut, started, err := c.cut(ctx, known)
	if err != nil {
		return c.tolerate(c.failed(ctx, err))
	}
	if cut.BySession() && !cut.HoldsSteps() {
		// The session writes the checkpoint itself, which has to be at the end of a
		// step.
		_, err := c.write(context.WithoutCancel(ctx), cut, started)
		return c.tolerate(err)
	}
	handedOver = true
	coord.Go("checkpoint", func(ctx context.Context) error {
		defer c.release()
		_, err := c.write(context.WithoutCancel(ctx), cut, started)
		return c.tolerate(err)
	})
	return nil
}

// write makes a cut durable. The caller holds busy.
func (c *checkpointer) write(ctx context.Context, cut *checkpoint.Snapshot, started time.Time) (SavedCheckpoint, error) {
	defer logging.Waiting(c.sayWaiting, "a checkpoint to be written")()
	defer func() {
		cut.Close()
		c.held += cut.Held()
	}()
	c.syncEvents(ctx)
	values := cut.Values()
	path, err := c.savePath()
	if err != nil {
		return SavedCheckpoint{}, c.failed(ctx, err)
	}
	prefix, err := c.saver.Write(ctx, cut, path, cut.Step)
	if err != nil {
		return SavedCheckpoint{}, c.failed(ctx, err)
	}
	saved := SavedCheckpoint{Step: cut.Step, Prefix: prefix, Time: time.Now(), Took: time.Since(started)}
	c.mu.Lock()
	c.saved, c.hasSaved = saved, true
	c.failures, c.pause, c.retry = 0, 0, time.Time{}
	c.current, c.values = saved, values
	c.mu.Unlock()
	c.stats.saved(saved.Took)
	c.warnRisk(saved.Took, cut.Held())
	c.announce(ctx, saved)
	return saved, nil
}

// sayWaiting logs that a save takes long, because once a stop is requested somebody waits for it.
func (c *checkpointer) sayWaiting(msg string, args ...any) {
	level := slog.LevelInfo
	if c.coord.ShouldStop() {
		level = slog.LevelWarn
	}
	c.log.Log(context.Background(), level, msg, args...)
}

// syncEvents makes the points of all steps up to the checkpoint durable before the checkpoint is. A
// run that is killed later, or loses power, continues after these steps, so nothing else would
// bring the points back.
func (c *checkpointer) syncEvents(ctx context.Context) {
	if c.flush != nil {
		c.flush(c.inSave(ctx), c.sess)
	}
	if c.events == nil {
		return
	}
	if err := c.events.Sync(ctx); err != nil {
		c.log.Error("events could not be written before the checkpoint", "err", err)
	}
}

// announce reports a checkpoint. It is durable by now, so an error here is not a failure of the
// save; but a listener may end the run.
func (c *checkpointer) announce(ctx context.Context, saved SavedCheckpoint) {
	if saved.Step >= 0 {
		c.log.Info("saved", "step", saved.Step, "checkpoint", saved.Prefix, "took", saved.Took)
	} else {
		c.log.Info("saved", "checkpoint", saved.Prefix, "took", saved.Took)
	}
	if c.events != nil && saved.Step >= 0 {
		if err := c.events.AddSession(ctx, tfpb.SessionLog_CHECKPOINT, c.path, saved.Step); err != nil {
			c.log.Error("checkpoint could not be recorded in the events file", "err", err)
		}
	}
	if c.onSave != nil {
		c.onSave(saved)
	}
	for _, l := range c.listeners {
		if err := l.AfterSave(c.inSave(ctx), saved); err != nil {
			c.coord.RequestStop(err)
		}
	}
}

// savePath is where checkpoints go, without the step number.
func (c *checkpointer) savePath() (string, error) {
	dir, err := c.home.dir()
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(c.home.sv.Logdir, c.path)
	return filepath.Join(dir, below), err
}

// moveTo makes the Saver manage the checkpoints at their new place. Nothing is deleted under an old
// name, which may belong to another run.
func (c *checkpointer) moveTo(from, to string) {
	c.mu.Lock()
	c.current, c.values = SavedCheckpoint{Step: session.NoStep}, nil // it is not where it was
	c.mu.Unlock()
	c.saver.MoveTo(from, to)
}
