package trainerd

import (
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/variables"
)

// Types that a training's own code names often have aliases here. Package session holds the whole
// contract, for new kinds of sessions.

// Session runs parts of a model.
type Session = session.Session

// OpError is a failure inside a session, with TensorFlow's error code.
type OpError = session.OpError

// Coordinator starts goroutines, tells them all to stop, and waits for them.
type Coordinator = coord.Coordinator

// Service is something that runs during the training.
type Service = coord.Service

// ServiceFunc is a function used as a [Service].
type ServiceFunc = coord.ServiceFunc

// Loop is a Service that calls a function on a timer.
type Loop = coord.Loop

// Hook is called during a run; package hook has ready-made ones.
type Hook = hook.Hook

// LogEvery, NaNGuard and StopAtStep are the hooks of most programs.
type (
	LogEvery   = hook.LogEvery
	NaNGuard   = hook.NaNGuard
	StopAtStep = hook.StopAtStep
)

// NaNError says that a loss is NaN or infinite.
type NaNError = hook.NaNError

// Trigger decides when a periodic action is due.
type Trigger = hook.Trigger

// Saver writes checkpoints and restores them, and deletes old ones.
type Saver = checkpoint.Saver

// VariableList returns the map for Saver.Variables in which each variable has its
// own name as key.
func VariableList(names ...string) map[string]string { return checkpoint.VariableList(names...) }

// WarmStart says how a new model starts from the values in another one's
// checkpoint.
type WarmStart = checkpoint.WarmStart

// KeepLast keeps that many of the newest checkpoints; for Saver.Retention.
type KeepLast = retention.Last

// KeepEvery keeps checkpoints at least that far apart in time; for
// Saver.Retention.
type KeepEvery = retention.Every

// KeepBest keeps the checkpoints with the best values of a metric; for
// Saver.Retention.
type KeepBest = retention.Best

// NoStep marks a missing step number: such a checkpoint has no number in its
// name, such a summary no step.
const NoStep = session.NoStep

// Errors of a session that a training branches on or returns.
var (
	ErrOutOfRange         = session.ErrOutOfRange
	ErrCompleted          = session.ErrCompleted
	ErrAborted            = session.ErrAborted
	ErrUnavailable        = session.ErrUnavailable
	ErrFailedPrecondition = session.ErrFailedPrecondition
)

// Variables is the session of a program that keeps its own parameters, in
// slices of numbers: see package variables for its methods, such as Float32 and Step.
type Variables = variables.Variables
