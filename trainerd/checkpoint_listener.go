package trainerd

import (
	"context"

	"github.com/trainerd/trainerd/trainerd/session"
)

// CheckpointListener is notified of the saves of a run, in the goroutine that saves: the
// training's, the checkpoint service's or the stop's. It cannot save itself: calling
// Supervisor.Save with its context is an error.
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
