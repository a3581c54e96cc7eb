package hook

import (
	"context"
	"errors"
	"log/slog"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Hook is called during a run, always from the goroutine of the training. An
// error of Begin or AfterStep ends the training, as if it had
// failed with that error; ErrOutOfRange ends it cleanly.
type Hook interface {
	// Begin is called when the session is ready, before the first step.
	Begin(ctx context.Context, s session.Session) error
	// AfterStep is called by Supervisor.StepDone, with the number of steps done.
	AfterStep(ctx context.Context, s session.Session, step int64) error
	// End is called when the training has ended without a failure, before the
	// final checkpoint.
	End(ctx context.Context, s session.Session) error
}

// Funcs is a Hook made of functions. Nil functions do nothing.
type Funcs struct {
	BeginFunc     func(ctx context.Context, s session.Session) error
	AfterStepFunc func(ctx context.Context, s session.Session, step int64) error
	EndFunc       func(ctx context.Context, s session.Session) error
}

// Begin calls BeginFunc.
func (h Funcs) Begin(ctx context.Context, s session.Session) error {
	if h.BeginFunc == nil {
		return nil
	}
	return h.BeginFunc(ctx, s)
}

// AfterStep calls AfterStepFunc.
func (h Funcs) AfterStep(ctx context.Context, s session.Session, step int64) error {
	if h.AfterStepFunc == nil {
		return nil
	}
	return h.AfterStepFunc(ctx, s, step)
}

// End calls EndFunc.
func (h Funcs) End(ctx context.Context, s session.Session) error {
	if h.EndFunc == nil {
		return nil
	}
	return h.EndFunc(ctx, s)
}

// Run is a hook's view of its run; see [Attacher].
type Run interface {
	// Session is the session without hooks.
	Session() session.Session
	// Context is done once a stop is requested.
	Context() context.Context
	// RequestStop asks for the end of the training, cleanly.
	RequestStop()

	// StepsDone is how many steps are done, as far as the run knows: at Begin,
	// the step from which it begins.
	StepsDone() int64
	// GlobalStep reads the step from the session; the error is [ErrNoStep] if there is none.
	GlobalStep(ctx context.Context) (int64, error)
	// StepName is the name of the global step, which with "/sec" is the tag of its
	// rate.
	StepName() string

	// SummaryOps are the summary ops that the graph names.
	SummaryOps() []string
	// SummaryComputed writes a summary as Supervisor.SummaryComputed does, or
	// does nothing in a run without events.
	SummaryComputed(ctx context.Context, summary any, step int64) error
	// Events is where the run's events go, or nil for a run without events.
	Events() *eventlog.Log
	// Logdir is the folder of the run, "" for none, in the file system FS.
	Logdir() string
	FS() ckptfmt.FS
	// Logger is never nil.
	Logger() *slog.Logger
}

// Attacher is a [Hook] that gets its run before each Begin.
type Attacher interface {
	Hook
	Attach(r Run)
}

// ErrNoStep says that a session has no global step.
var ErrNoStep = errors.New("the session has no global step")
