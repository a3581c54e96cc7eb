package trainerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
)

// Defaults of Supervisor, as in TensorFlow where it has the option.
const (
	DefaultSaveModelEvery     = 600 * time.Second
	DefaultSaveSummariesEvery = 120 * time.Second
	DefaultStopGrace          = 120 * time.Second
	DefaultCheckpointBasename = "model.ckpt"
	DefaultGlobalStep         = "global_step"
	DefaultMaxSaveFailures    = 20
)

// Supervisor keeps a training alive: it restores the newest sound checkpoint or
// initialises the model, runs the services beside the training, stops all of it
// in order, and saves a last time.
//
// Options are named as the arguments of tf.train.Supervisor. A zero field means
// its default; a negative duration switches a service off. An [Op] tells
// default, none and given apart. The options must not change during a run.
//
// The methods are safe for concurrent use. A Supervisor may be used for several
// runs, one after the other.
type Supervisor struct {
	// NewSession makes the session in which the model lives. Required, unless
	// SessionManager is set.
	NewSession func(ctx context.Context) (Session, error)
	// MetaGraph is the graph that the session runs, with the collections that
	// defaults are taken from. Nil for a program without a graph.
	MetaGraph *tfpb.MetaGraphDef

	// Logdir is where checkpoints and events go. Without it there are neither.
	Logdir string
	// NonChief makes this process a worker: it waits until the chief has made
	// the model ready, and writes nothing.
	NonChief bool

	// InitOp initialises a model for which there is no checkpoint, fed with
	// InitFeeds; then InitFunc is called. Default: collection init_op, else the
	// initialisers of all global variables.
	InitOp    Op
	InitFeeds map[string]*ckptfmt.Tensor
	InitFunc  func(ctx context.Context, s Session) error
	// LocalInitOp runs in every process and after every restore. Default:
	// collection local_init_op, else the initialisers of local variables and
	// tables.
	LocalInitOp Op
	// ReadyForLocalInitOp must find the model ready before LocalInitOp runs.
	// Default: collection ready_for_local_init_op, else none.
	ReadyForLocalInitOp Op
	// ReadyOp says whether the model is ready. Default: collection ready_op,
	// else that every variable of a [VariableStore] has a value.
	ReadyOp Op
	// SummaryOp gives the summaries for the summary service: Nodes, or a
	// SummaryFunc. Default: collection summary_op, else all of collection
	// summaries.
	SummaryOp Op
	// GlobalStep names, with Nodes, the variable that counts the steps.
	// Default: collection global_step, else an integer variable global_step.
	GlobalStep Op

	// Saver writes and restores checkpoints. Nil means one for all global
	// variables; with NoSaver there is neither saving nor recovery.
	Saver   *Saver
	NoSaver bool
	// CheckpointBasename begins the names of checkpoints. "" means
	// "model.ckpt".
	CheckpointBasename string
	// SaveModelEvery is the time between two checkpoints (default 600 s).
	// SaveModelSteps, if positive, also saves whenever the global step reaches
	// a multiple of it; the training then calls StepDone after each step. If
	// both are off, no checkpoint is written at the end either.
	SaveModelEvery time.Duration
	SaveModelSteps int64
	// MaxSaveFailures is how many saves may fail in a row, with pauses that
	// grow, before the run ends (default 20; negative: without limit). The
	// checkpoint before them stays in force.
	MaxSaveFailures int
	// OnSave, if not nil, is called after each checkpoint is durable.
	OnSave func(SavedCheckpoint)

	// SaveSummariesEvery is the time between two runs of the summary service
	// and of the step counter (default 120 s).
	SaveSummariesEvery time.Duration
	// SummaryWriter is used instead of a new events file in Logdir. The run
	// closes it, as TensorFlow's Supervisor does, unless KeepSummaryWriter is
	// set. With NoSummaryWriter no events are written.
	SummaryWriter     *tfevents.FileWriter
	NoSummaryWriter   bool
	KeepSummaryWriter bool
	// StartAtRestoredStep writes SessionLog START at the restored step, as
	// TensorFlow does, instead of the step after it. TensorBoard then drops the
	// restored step's own points.
	StartAtRestoredStep bool

	// SessionManager is used instead of one made from the options above.
	SessionManager *SessionManager
	// RecoveryWait, MaxWait and WaitForCheckpoint are those of the
	// SessionManager.
	RecoveryWait      time.Duration
	MaxWait           time.Duration
	WaitForCheckpoint bool

	// Services run beside the training, in every process.
	Services []Service
	// Hooks are called at the beginning, after each step that StepDone is told
	// of, and at the end.
	Hooks []Hook
	// NoStandardServices leaves out the checkpoint, summary and step-counter
	// services, the queue runners and SessionLog START. They can be started
	// with StartStandardServices.
	NoStandardServices bool
	// StopGrace is how long everything may take to end after a stop was asked
	// for (default 120 s; negative: not at all).
	StopGrace time.Duration

	// MaxRestarts is how often in a row Run may begin again with a new session,
	// from the last checkpoint, when the training failed with ErrAborted or
	// ErrUnavailable: its session was lost, as when a server restarts. A run
	// that saved a checkpoint starts the count anew. The default is not at all,
	// as in TensorFlow; negative is without limit.
	MaxRestarts int

	// Logger is told what happens. Nil discards.
	Logger *slog.Logger

	coord Coordinator

	mu   sync.Mutex
	run  *run                 // the current run, nil before the first
	kept *tfevents.FileWriter // left open for the next run, with KeepSummaryWriter
}

// Run prepares a session, runs train with it, and stops everything in order,
// saving a final checkpoint.
//
// The context that train gets is done once a stop is asked for: by ctx, by a
// service that failed, or by RequestStop. train should return between two steps
// then. What train passes to its session as context does not interrupt a step
// that has begun, until the grace period is over; see [StepContext].
//
// Run returns nil when train returned nil or [ErrOutOfRange], and when ctx asked
// for the stop. Otherwise it returns the first error of train or a service,
// with later ones behind it. If train failed or anything panicked, no final
// checkpoint is written: the one before it stays in force. See MaxRestarts for
// sessions that are lost.
func (sv *Supervisor) Run(ctx context.Context, train func(ctx context.Context, s Session) error) error {
	pause := firstRestart
	for restarts := 0; ; restarts++ {
		err := sv.runOnce(ctx, train)
		if _, saved := sv.LastSave(); saved {
			restarts, pause = 0, firstRestart
		}
		if !isLost(err) || sv.MaxRestarts >= 0 && restarts >= sv.MaxRestarts || ctx.Err() != nil {
			return err
		}
		sv.log().Warn("session was lost; beginning again from the last checkpoint", "err", err, "retry_in", pause)
		if !sleep(ctx, pause) {
			return err
		}
		pause = min(2*pause, maxRestart)
	}
}

// Pauses before a session that was lost is replaced.
const (
	firstRestart = time.Second
	maxRestart   = time.Minute
)

// isLost reports whether an error means that the session is gone, not that
// something is wrong with the training.
func isLost(err error) bool {
	return errors.Is(err, ErrAborted) || errors.Is(err, ErrUnavailable)
}

func (sv *Supervisor) runOnce(ctx context.Context, train func(ctx context.Context, s Session) error) error {
	sess, err := sv.PrepareOrWaitForSession(ctx)
	if err != nil {
		if ctx.Err() != nil && isCancellation(err) {
			return nil // told to stop before there was anything to save
		}
		return err
	}
	r := sv.current()
	defer r.sess.Close()
	// Deferred for a train that leaves by runtime.Goexit; else it comes second
	// and does nothing.
	defer sv.Stop()
	unlink := context.AfterFunc(ctx, func() { sv.coord.RequestStop(nil) })
	defer unlink()

	trainCtx, cancel := trainContext(ctx, &sv.coord, sv.stopGrace())
	defer cancel()
	err = callGuarded("train", func() error { return sv.trainWithHooks(trainCtx, sess, train) })
	if ctx.Err() != nil {
		sv.coord.RequestStop(nil) // the linked call may not have come yet
	}
	sv.RequestStop(err)
	return sv.Stop()
}

// trainWithHooks calls the hooks around the training. End is called also when a
// stop was asked for, so its context is that of the steps.
func (sv *Supervisor) trainWithHooks(ctx context.Context, s Session, train func(ctx context.Context, s Session) error) error {
	for _, h := range sv.Hooks {
		if err := h.Begin(ctx, s); err != nil {
			return err
		}
	}
	err := train(ctx, s)
	if err != nil && !sv.coord.ends(err) {
		return err
	}
	end, cancel := StepContext(ctx)
	defer cancel()
	for _, h := range sv.Hooks {
		if hookErr := h.End(end, s); hookErr != nil {
			return hookErr
		}
	}
	return err
}

func isCancellation(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrCancelled)
}

// Coordinator returns the coordinator of the services.
func (sv *Supervisor) Coordinator() *Coordinator { return &sv.coord }

// ShouldStop reports whether the training should end.
func (sv *Supervisor) ShouldStop() bool { return sv.coord.ShouldStop() }

// RequestStop asks for the end of the run. An error that is not a clean end
// means that the training has failed: there will be no final checkpoint.
func (sv *Supervisor) RequestStop(cause error) {
	if r := sv.current(); r != nil && cause != nil && !sv.coord.ends(cause) {
		r.failed.Store(true)
	}
	sv.coord.RequestStop(cause)
}

// WaitForStop waits until a stop is asked for, or until ctx is done. It reports
// whether a stop was asked for.
func (sv *Supervisor) WaitForStop(ctx context.Context) bool { return sv.coord.WaitForStop(ctx) }

// StopOnError runs f in the calling goroutine; its error asks for a stop and is
// returned by Stop and Run.
func (sv *Supervisor) StopOnError(name string, f func(ctx context.Context) error) {
	sv.coord.StopOnError(name, f)
}

// Loop calls f on a timer until the run ends, in a goroutine of its own; see
// [Loop]. An error of f ends the run.
func (sv *Supervisor) Loop(name string, interval time.Duration, f func(ctx context.Context) error) {
	sv.coord.Go(name, (&Loop{Interval: interval, Func: f}).Serve)
}

// IsChief reports whether this process initialises, saves and writes events.
func (sv *Supervisor) IsChief() bool { return !sv.NonChief }

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

// errNoRun is what methods return that need a session, before one is prepared.
var errNoRun = errors.New("the supervisor has no session; call Run or PrepareOrWaitForSession first")

// ErrNoSummaryWriter says that the supervisor writes no events: it is not the
// chief, or has neither a logdir nor a summary writer.
var ErrNoSummaryWriter = errors.New("writing a summary requires a summary writer; set Logdir or SummaryWriter on the chief")

// SummaryComputed writes a summary that the training made itself. A negative
// step means the current global step.
//
// A disk that is full is no error here: it must not end the training. The
// summary is dropped then, and the log says so.
func (sv *Supervisor) SummaryComputed(ctx context.Context, s *tfpb.Summary, step int64) error {
	r := sv.current()
	if r == nil {
		return errNoRun
	}
	if r.writer == nil {
		return ErrNoSummaryWriter
	}
	if step < 0 {
		var err error
		if step, err = readStep(ctx, r.sess, r.plan.globalStep); err != nil {
			return err
		}
	}
	return r.events.addSummary(ctx, s, max(step, 0))
}

// Writer returns the events file of the run, for events beyond summaries, or
// nil when there is none.
func (sv *Supervisor) Writer() *tfevents.FileWriter {
	if r := sv.current(); r != nil {
		return r.writer
	}
	return nil
}

// Prepared says how the model of the current run came to be. It is nil before
// the session is prepared, and for a worker.
func (sv *Supervisor) Prepared() *Prepared {
	if r := sv.current(); r != nil {
		return r.prepared
	}
	return nil
}

// LastSave returns the newest checkpoint that this run has written.
func (sv *Supervisor) LastSave() (saved SavedCheckpoint, ok bool) {
	r := sv.current()
	if r == nil || r.checkpoints == nil {
		return SavedCheckpoint{}, false
	}
	return r.checkpoints.lastSaved()
}

// Save writes a checkpoint now and returns when it is durable. It writes none
// when the current step is saved already.
func (sv *Supervisor) Save(ctx context.Context) (SavedCheckpoint, error) {
	r := sv.current()
	if r == nil {
		return SavedCheckpoint{}, errNoRun
	}
	if r.checkpoints == nil {
		return SavedCheckpoint{}, errors.New("the supervisor saves no checkpoints: it has no logdir, no saver, or is not the chief")
	}
	return r.checkpoints.save(ctx)
}

// StepDone tells the supervisor that a step has ended, with the number of steps
// done so far. The training calls it between two steps, from the goroutine that
// runs them. It takes the checkpoints of SaveModelSteps, exactly at their
// steps: the variables are copied before it returns, and written in the
// background. Where one call counts several steps, a multiple of SaveModelSteps
// among them is saved at that call.
//
// While the checkpoint before is still being written, StepDone waits for it.
//
// An error, which may be a hook's, is for the training to return. A step at
// which a hook fails is not saved.
func (sv *Supervisor) StepDone(ctx context.Context, step int64) error {
	r := sv.current()
	if r == nil {
		return errNoRun
	}
	before := r.stepsDone.Swap(step)
	for _, h := range sv.Hooks {
		if err := h.AfterStep(ctx, r.managed, step); err != nil {
			return err
		}
	}
	if r.checkpoints == nil || sv.SaveModelSteps <= 0 || step/sv.SaveModelSteps <= before/sv.SaveModelSteps {
		return nil
	}
	return r.checkpoints.saveInBackground(ctx, &sv.coord)
}

func (sv *Supervisor) current() *run {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	return sv.run
}

func (sv *Supervisor) setCurrent(r *run) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.run = r
}

func (sv *Supervisor) stopGrace() time.Duration {
	if sv.StopGrace == 0 {
		return DefaultStopGrace
	}
	return max(sv.StopGrace, 0)
}

func (sv *Supervisor) log() *slog.Logger { return logger(sv.Logger) }

// interval returns an option's value: the default for zero, and zero for off.
func interval(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

func (sv *Supervisor) check() error {
	switch {
	case sv.NewSession == nil && sv.SessionManager == nil:
		return errors.New("Supervisor.NewSession is not set")
	case sv.GlobalStep.fn != nil || len(sv.GlobalStep.nodes) > 1:
		return errors.New("Supervisor.GlobalStep must name one variable")
	case sv.CheckpointBasename != "" && filepath.Base(sv.CheckpointBasename) != sv.CheckpointBasename:
		return fmt.Errorf("Supervisor.CheckpointBasename %q must not contain path components", sv.CheckpointBasename)
	}
	return nil
}
