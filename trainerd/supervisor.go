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

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/internal/option"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Defaults of Supervisor, as in TensorFlow where it has the option.
const (
	DefaultSaveModelEvery     = 600 * time.Second
	DefaultSaveSummariesEvery = 120 * time.Second
	DefaultStopGrace          = 120 * time.Second
	DefaultCheckpointBasename = "model.ckpt"
	DefaultGlobalStep         = session.DefaultGlobalStep
	DefaultMaxSaveFailures    = 20
)

// Supervisor keeps a training alive: it restores the newest intact checkpoint or
// initialises the model, runs the services during the training, stops everything
// in order, and saves a last time.
//
// Options are named as the arguments of tf.train.Supervisor. A zero field means
// its default; a negative duration switches a service off. An [Op] distinguishes
// default, none and given. The options must not change during a run, nor be read
// while another goroutine may call SetSaveModelEvery; see Settings.
//
// The methods are safe for concurrent use. A Supervisor may be used for several
// runs, one after another.
type Supervisor struct {
	// MetaGraph is the graph to train, whose collections provide defaults. Nil for a program without
	// a graph.
	MetaGraph *tfpb.MetaGraphDef
	// Open makes the session that runs MetaGraph at Master, usually target.Open.
	// If the graph lacks a saver, init op, local init op, ready op or summary op,
	// it is first added to a copy, as [graph.Complete] does.
	Open func(ctx context.Context, master string, meta *tfpb.MetaGraphDef) (session.Session, error)
	// Master names where Open makes the session: "" for this process,
	// "grpc://host:port" for a TensorFlow server.
	Master string
	// NewSession makes the session in which the model lives, instead of Open.
	// MetaGraph, if the session runs one, is then used unchanged. One of Open,
	// NewSession and SessionManager is required.
	NewSession func(ctx context.Context) (session.Session, error)

	// Logdir is where checkpoints and events go. Without it, none are written.
	Logdir string
	// NonChief makes this process a worker: it waits until the chief has made the model ready, and
	// writes nothing. It must share its session with the chief, as on a server;
	// [variables.Variables] belong to one process.
	NonChief bool

	// InitOp initialises a model for which there is no checkpoint, fed with
	// InitFeeds; then InitFunc is called. Default: collection init_op, or else
	// the initialisers of all global variables.
	InitOp    Op
	InitFeeds map[string]*ckptfmt.Tensor
	InitFunc  func(ctx context.Context, s session.Session) error
	// LocalInitOp runs in every process and after every restore. Default:
	// collection local_init_op, else the initialisers of local variables and
	// tables.
	LocalInitOp Op
	// LocalInitTimeout limits one run of LocalInitOp, unless it is zero: the
	// only one of TensorFlow's local_init_run_options that applies here.
	LocalInitTimeout time.Duration
	// ReadyForLocalInitOp must find the model ready before LocalInitOp runs.
	// Default: collection ready_for_local_init_op, else none. Setting it is an
	// error if LocalInitOp is None.
	ReadyForLocalInitOp Op
	// ReadyOp says whether the model is ready. Default: collection ready_op, or
	// else whether the global and local variables of MetaGraph have values, in
	// any kind of session. Without a graph that lists variables, all those of a
	// [session.VariableStore] must have values.
	ReadyOp Op
	// SummaryOp returns the summaries for the summary service: Nodes, or a
	// SummaryFunc. Default: collection summary_op, else all of collection
	// summaries.
	SummaryOp Op
	// GlobalStep names, with Nodes, the variable that counts the steps.
	// Default: collection global_step, else an integer variable global_step.
	GlobalStep Op

	// Saver writes and restores checkpoints. Nil means one for all global
	// variables; NoSaver means neither saving nor recovery.
	Saver   *checkpoint.Saver
	NoSaver bool
	// CheckpointBasename begins the names of checkpoints. "" means
	// "model.ckpt".
	CheckpointBasename string
	// SaveModelEvery is the time between two checkpoints (default 600 s). If steps
	// had to wait for the last one, they get at least as long for themselves.
	// SaveModelSteps, if positive, also saves whenever the global step reaches
	// a multiple of it; the training then calls StepDone after each step. If
	// both are off, no checkpoint is written at the end either.
	SaveModelEvery time.Duration
	SaveModelSteps int64
	// MaxSaveFailures is how many saves may fail in a row, with growing
	// pauses, before the run ends (default 20, which takes about an hour;
	// negative: no limit). The checkpoint before them stays current.
	MaxSaveFailures int
	// SaveBudget limits the cost of saving, and of a crash. The zero
	// SaveBudget sets no limits.
	SaveBudget SaveBudget
	// OnSave, if not nil, is called after each checkpoint is durable, within the
	// save: it must not call Save.
	OnSave func(SavedCheckpoint)
	// OnRelock, if not nil, is called when the lock file was deleted during the run, usually with
	// everything else in the logdir, and the logdir has been locked again. It can restore files that
	// the program keeps there. It may be called within a save.
	OnRelock func()
	// FlushSummaries, if not nil, makes the session write the points that the graph's own summary
	// writers still hold. It is called when the variables of a checkpoint are copied, before the
	// checkpoint is durable, so that a run that resumes there lacks no point.
	FlushSummaries func(ctx context.Context, s session.Session)
	// Listeners are called before and after each save, and may end the run.
	Listeners []CheckpointListener

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
	// RecoveryWait, MaxWait, WaitForCheckpoint, Adopt, BeforeRestore and OnWait
	// are those of the SessionManager.
	RecoveryWait      time.Duration
	MaxWait           time.Duration
	WaitForCheckpoint bool
	Adopt             func(ctx context.Context, s session.Session) (bool, error)
	BeforeRestore     func(ctx context.Context, s session.Session) error
	OnWait            func(reason error)

	// Services run during the training, in every process.
	Services []coord.Service
	// Hooks are called at the beginning, after each step, and at the end; see
	// StepDone, and [hook.RunHook] for those that take part in the session's calls.
	Hooks []hook.Hook
	// NoStandardServices leaves out the checkpoint, summary and step-counter
	// services, the queue runners and SessionLog START. They can be started
	// with StartStandardServices.
	NoStandardServices bool
	// StopGrace is how long everything may take to end after a stop was
	// requested (default 120 s; negative: no time).
	StopGrace time.Duration
	// SaveGrace is how long a save that is in progress at the stop may take,
	// and then the final one. Zero means StopGrace, or ten times as long as
	// the slowest save of the run, if that is more; negative means no limit.
	SaveGrace time.Duration

	// MaxRestarts is how often in a row Run may begin again with a new session,
	// from the last checkpoint, when the training failed with ErrAborted or
	// ErrUnavailable: its session was lost, as when a server restarts. A session
	// that saved a checkpoint resets the count; so does a worker's session, or
	// one that adopted its model, if it reached a higher step than all before.
	// The default is never, as in TensorFlow; negative means no limit.
	MaxRestarts int
	// MaxRewinds is how often in a row Run may go back to a checkpoint when the training
	// failed with a [*hook.NaNError], such as that of a [hook.NaNGuard]. If it fails again
	// no later than before, it goes back one checkpoint further. The default is never.
	MaxRewinds int
	// OnRewind, if not nil, is called after the model went back, before the
	// training continues: to lower the learning rate, or to skip the bad batch.
	// Without such a change a deterministic training fails in the same way again.
	// If the session is lost before a later checkpoint was saved, it is called
	// again in the next session, with the same Rewind.
	OnRewind func(ctx context.Context, s session.Session, r Rewind) error

	// NoReport leaves out the report of the run, run-report.json and
	// run-report.md in the logdir.
	NoReport bool

	// Logger receives the log. Nil discards.
	Logger *slog.Logger

	coord coord.Coordinator

	busy atomic.Bool         // from the preparation to the end of all sessions of a run
	run  atomic.Pointer[run] // the current run, nil before the first
	// stopAsked says that RequestStop requested a clean end, possibly after a lost session had
	// already stopped the coordinator. Then there must be no other session.
	stopAsked atomic.Bool
	riskTold  atomic.Bool          // the log has that SaveBudget.MaxRisk cannot be kept
	mu        sync.Mutex           // guards SaveModelEvery once a run has begun
	kept      *tfevents.FileWriter // left open for the next run, with KeepSummaryWriter
	lock      *logdir.Lock         // from the first session of a run to the end of the last one; nil for none
	hanging   *coord.Detached      // in the logdir when a session ended; nil for nothing
	events    *eventlog.Log        // of the newest session, nil before the first

	stats     runStats
	rewound   *Rewind // that no checkpoint holds yet, nil for none
	rewoundIn *run    // the session that was prepared for it
}

// IsChief reports whether this process initialises, saves and writes events.
func (sv *Supervisor) IsChief() bool { return !sv.NonChief }

// Prepared says how the model of the current run was prepared. It is nil
// before the session is prepared, and for a worker.
func (sv *Supervisor) Prepared() *Prepared {
	if r := sv.current(); r != nil {
		return r.prepared
	}
	return nil
}

func (sv *Supervisor) current() *run { return sv.run.Load() }

func (sv *Supervisor) setCurrent(r *run) { sv.run.Store(r) }

func (sv *Supervisor) log() *slog.Logger { return logging.OrDiscard(sv.Logger) }

// interval returns an option's value: the default for zero, and zero for off.
func interval(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

func (sv *Supervisor) check() error {
	switch {
	case sv.NewSession == nil && sv.SessionManager == nil && sv.Open == nil:
		return errors.New("Supervisor: none of Open, NewSession and SessionManager is set")
	case sv.Open != nil && (sv.NewSession != nil || sv.SessionManager != nil):
		return errors.New("Supervisor: Open is set together with NewSession or SessionManager; set one of them")
	case sv.Open != nil && sv.MetaGraph == nil:
		return errors.New("Supervisor: Open is set without MetaGraph, the graph that it opens a session for")
	case sv.Open == nil && sv.Master != "":
		return fmt.Errorf("Supervisor: Master is %q without Open, which makes the session there", sv.Master)
	case sv.GlobalStep.fn != nil || len(sv.GlobalStep.nodes) > 1:
		return errors.New("Supervisor.GlobalStep must name one variable")
	case sv.SaveBudget.MaxRisk < 0:
		return fmt.Errorf("Supervisor.SaveBudget.MaxRisk %v must not be negative", sv.SaveBudget.MaxRisk)
	case sv.SaveBudget.MaxShare < 0 || sv.SaveBudget.MaxShare >= 1 || sv.SaveBudget.MaxShare != sv.SaveBudget.MaxShare:
		return fmt.Errorf("Supervisor.SaveBudget.MaxShare %v must be at least 0 and less than 1", sv.SaveBudget.MaxShare)
	case sv.CheckpointBasename != "" && filepath.Base(sv.CheckpointBasename) != sv.CheckpointBasename:
		return fmt.Errorf("Supervisor.CheckpointBasename %q must not contain path components", sv.CheckpointBasename)
	}
	return errors.Join(
		option.NoneIsNil("Supervisor.Services", sv.Services),
		option.NoneIsNil("Supervisor.Hooks", sv.Hooks),
		option.NoneIsNil("Supervisor.Listeners", sv.Listeners),
	)
}

// errNoRun is returned by methods that need a session, before one is prepared.
var errNoRun = errors.New("the supervisor has no session; call Run or PrepareOrWaitForSession first")

// Settings are the options of a [Supervisor] with the defaults filled in, like
// the properties of tf.train.Supervisor.
type Settings struct {
	IsChief bool

	InitOp, LocalInitOp, ReadyOp, ReadyForLocalInitOp, SummaryOp Op

	// GlobalStep is the name of the variable that counts the steps, "" for none.
	// Whether the session has it is known only when it is prepared.
	GlobalStep string

	Saver          *checkpoint.Saver // nil for none
	SessionManager *SessionManager

	SavePath                           string        // without the step number, "" for none
	SaveModelEvery, SaveSummariesEvery time.Duration // zero for off
	RecoveryWait, StopGrace            time.Duration
}

// Settings returns the effective options. A worker has no path to save to and
// no intervals.
func (sv *Supervisor) Settings() (*Settings, error) {
	p, err := sv.plan()
	if err != nil {
		return nil, err
	}
	s := &Settings{
		IsChief: sv.IsChief(), InitOp: p.init, LocalInitOp: p.localInit, ReadyOp: p.ready,
		ReadyForLocalInitOp: p.readyForLocalInit, SummaryOp: p.summary,
		GlobalStep: p.globalStep, Saver: p.saver, SavePath: sv.SavePath(), StopGrace: sv.stopGrace(),
	}
	if s.SessionManager = sv.SessionManager; s.SessionManager == nil {
		s.SessionManager = sv.sessionManager(p)
	}
	s.RecoveryWait = s.SessionManager.recoveryWait()
	if sv.IsChief() {
		s.SaveModelEvery = sv.saveModelEvery()
		s.SaveSummariesEvery = interval(sv.SaveSummariesEvery, DefaultSaveSummariesEvery)
	}
	return s, nil
}
