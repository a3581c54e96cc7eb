package trainerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Rewind describes how a training whose loss was NaN continues from an earlier
// checkpoint.
type Rewind struct {
	Cause      *hook.NaNError
	Checkpoint string // its prefix
	Step       int64  // that the checkpoint has
	Count      int    // of rewinds in a row, from 1
}

// rewinder remembers how far a run has gone back.
type rewinder struct {
	count   int   // in a row
	further int   // checkpoints to skip
	failed  int64 // step of the last failure
}

// rewind makes an older checkpoint current if the run failed with a *hook.NaNError
// and may go back. It reports whether the training is to begin again.
func (sv *Supervisor) rewind(ctx context.Context, b *rewinder, err error) bool {
	var nan *hook.NaNError
	r := sv.current()
	if sv.MaxRewinds <= 0 || !errors.As(err, &nan) || r == nil || r.checkpoints == nil {
		return false
	}
	if b.count > 0 && nan.Step > b.failed {
		b.count, b.further = 0, 0 // it got past the place
	}
	if b.count >= sv.MaxRewinds {
		return false
	}
	b.failed = nan.Step
	if sv.hanging != nil {
		sv.clearStop() // the failed session's, which another one replaces to end the waiting
		if err := sv.await("a save that hangs in the logdir", func() error { return sv.awaitHanging(ctx) }); err != nil {
			return false
		}
	}
	to := olderThan(sv.checkpointsOf(r), nan.Step, b.further)
	if to == "" {
		return false
	}
	if err := sv.goBack(r, to); err != nil {
		sv.log().Error("cannot rewind to an earlier checkpoint", "checkpoint", to, "err", err)
		return false
	}
	b.count++
	b.further++
	sv.rewound = &Rewind{Cause: nan, Checkpoint: to, Step: ckptdir.StepOf(to), Count: b.count}
	sv.log().Warn("loss is NaN; rewinding", "step", nan.Step, "loss", nan.Loss, "to", filepath.Base(to))
	sv.stats.rewinding()
	return true
}

// settleRewind forgets the last rewind once a later checkpoint exists. Until then OnRewind is
// called in every session of the run, because a lost session loses what OnRewind has changed.
func (sv *Supervisor) settleRewind() {
	if saved, ok := sv.LastSave(); ok && sv.rewoundIn == sv.current() && sv.rewound != nil && saved.Step > sv.rewound.Step {
		sv.rewound = nil
	}
}

// afterRewind calls OnRewind in a session that continues from an earlier
// checkpoint.
func (sv *Supervisor) afterRewind(ctx context.Context, r *run) error {
	if sv.rewound == nil {
		return nil
	}
	if from := r.prepared.Restored; from != "" { // an older one, if that of the rewind is damaged
		sv.rewound.Checkpoint, sv.rewound.Step = from, ckptdir.StepOf(from)
	}
	if sv.OnRewind != nil {
		if err := sv.OnRewind(ctx, r.hooked, *sv.rewound); err != nil {
			return fmt.Errorf("OnRewind: %w", err)
		}
	}
	sv.rewoundIn = r
	return nil
}

// adoption returns the function that decides whether a live model belongs to this run. After a
// rewind it does not: it is the model whose loss is NaN.
func (sv *Supervisor) adoption() func(context.Context, session.Session) (bool, error) {
	if sv.rewound != nil {
		return nil
	}
	return sv.Adopt
}

// checkpointsOf returns the existing checkpoints of the run, in the reverse of the order in which a
// restart tries them: those in the rotation, and those kept outside it.
func (sv *Supervisor) checkpointsOf(r *run) (all []string) {
	found, err := r.plan.saver.Find(sv.Logdir, filepath.Base(sv.SavePath()))
	if err != nil {
		sv.log().Warn("cannot look for older checkpoints in the logdir", "err", err)
		return r.plan.saver.LastCheckpoints()
	}
	for _, prefix := range slices.Backward(found.Prefixes) {
		abs, err := filepath.Abs(prefix)
		if err != nil {
			continue
		}
		if _, err := ckptdir.Find(abs); err == nil {
			all = append(all, abs)
		}
	}
	return all
}

// olderThan skips as many of the newest checkpoints before a step as further says, and returns the
// next older one, or the oldest, or "" if there is none. It ignores checkpoints whose step is not
// below that of the next one saved: a rewind has abandoned their training.
func olderThan(oldestFirst []string, step int64, further int) string {
	to := ""
	for i := len(oldestFirst) - 1; i >= 0; i-- {
		if s := ckptdir.StepOf(oldestFirst[i]); s < 0 || s >= step {
			continue
		}
		to, step = oldestFirst[i], ckptdir.StepOf(oldestFirst[i])
		if further == 0 {
			break
		}
		further--
	}
	return to
}

// goBack makes a checkpoint current.
func (sv *Supervisor) goBack(r *run, prefix string) error {
	if err := sv.lock.Held(); err != nil {
		return err
	}
	return r.plan.saver.MakeCurrent(sv.Logdir, prefix)
}

// quarantine moves damaged checkpoints out of the way of the run, into a directory of their own
// below the logdir. They are never deleted: somebody may want to salvage their contents, or a newer
// version can read them. One that merely could not be read, for example for lack of permission,
// stays where it is.
func (sv *Supervisor) quarantine(r *run) error {
	var errs []error
	for _, bad := range r.prepared.Damaged {
		var corrupt *ckptfmt.CorruptError
		newer := errors.Is(bad.Err, ckptfmt.ErrVersion) // which the next save of its step would replace
		if !newer && !errors.As(bad.Err, &corrupt) || !sv.inLogdir(bad.Prefix) {
			continue
		}
		dir, err := checkpoint.Quarantine(r.fs(), bad.Prefix, time.Now())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if newer {
			sv.log().Warn("moved checkpoint of a newer release aside", "checkpoint", bad.Prefix, "to", dir)
			continue
		}
		sv.log().Warn("moved damaged checkpoint aside", "checkpoint", bad.Prefix, "to", dir)
	}
	if len(errs) > 0 {
		return fmt.Errorf("moving damaged checkpoints aside: %w", errors.Join(errs...))
	}
	return nil
}

func (sv *Supervisor) inLogdir(prefix string) bool {
	logdir, err := filepath.Abs(sv.Logdir)
	if err != nil {
		return false
	}
	abs, err := filepath.Abs(prefix)
	return err == nil && filepath.Dir(abs) == logdir
}
