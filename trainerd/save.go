package trainerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
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
	return sv.saveNow(ctx, requested)
}

// ForceSave is like Save, but always writes a checkpoint. One of the same step
// is replaced.
func (sv *Supervisor) ForceSave(ctx context.Context) (SavedCheckpoint, error) {
	return sv.saveNow(ctx, forced)
}

func (sv *Supervisor) saveNow(ctx context.Context, why saveReason) (SavedCheckpoint, error) {
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
	return r.checkpoints.save(ctx, context.WithoutCancel(ctx), why)
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

// errRunEnded is returned by methods that would write to a logdir which may belong to another run
// by now.
var errRunEnded = errors.New("the run has ended; nothing is saved any more")

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
