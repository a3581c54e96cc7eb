package trainerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// openLogdir makes the logdir, locks it, and removes what a killed run left.
func (sv *Supervisor) openLogdir(ctx context.Context, r *run) error {
	if sv.NonChief || sv.Logdir == "" {
		return nil
	}
	if err := sv.awaitHanging(ctx); err != nil {
		return err
	}
	if err := sv.lockLogdir(r); err != nil {
		return err
	}
	r.lock = sv.lock
	removed, err := ckptdir.SweepTemps(sv.Logdir, 0, &ckptfmt.FileOptions{FS: r.fs()})
	if len(removed) > 0 {
		sv.log().Info("removed temporary files of a run that was killed", "files", removed)
	}
	if err != nil {
		sv.log().Warn("temporary files could not be removed", "err", err)
	}
	return nil
}

// lockLogdir makes the logdir and locks it, unless the previous session has passed its lock on. In
// that case the logdir may have been deleted in between.
func (sv *Supervisor) lockLogdir(r *run) error {
	if sv.lock != nil {
		before := sv.lock.Relocked()
		err := sv.lock.Held()
		if err == nil && sv.lock.Relocked() > before && sv.OnRelock != nil {
			sv.OnRelock()
		}
		return err
	}
	if err := atomicfile.MkdirAllSync(r.fs(), sv.Logdir); err != nil {
		return fmt.Errorf("logdir %s cannot be made: %w", sv.Logdir, err)
	}
	lock, err := logdir.Acquire(sv.Logdir, sv.log())
	sv.lock = lock
	return err
}

// savedWithServers returns which files a save by servers makes in the logdir, or nil if this
// process writes them all. A server that saves makes the folder again if it was deleted, so a whole
// save may be there before this process looks.
func (sv *Supervisor) savedWithServers(sess session.Session, saver *Saver) func(name string) bool {
	if _, isStore := sess.(session.VariableStore); isStore {
		return nil
	}
	base := filepath.Base(sv.SavePath())
	return func(name string) bool { return saver.Writes(base, name) }
}

// unlock releases the lock on the logdir, once nothing works there any more.
func (sv *Supervisor) unlock() error {
	lock, hanging := sv.lock, sv.hanging
	sv.lock = nil
	if lock == nil || hanging == nil {
		return lock.Release()
	}
	sv.hanging = coord.Detach("lock on the logdir", func() error { return errors.Join(hanging.Wait(), lock.Release()) })
	return nil
}

// settled ends when nothing of the session still works in the logdir.
func (r *run) settled() *coord.Detached {
	return coord.Detach("end of the session", func() error {
		if r.checkpoints != nil && r.checkpoints.acquire(context.Background()) == nil {
			r.checkpoints.release()
		}
		for _, d := range r.straggling {
			_ = d.Wait() // a stop has reported that it hangs
		}
		return nil
	})
}

// awaitHanging waits until nothing of the previous session still works in the logdir: a save may be
// waiting for the lost servers.
func (sv *Supervisor) awaitHanging(ctx context.Context) error {
	if sv.hanging == nil {
		return nil
	}
	select {
	case <-sv.hanging.Done():
		ended := sv.hanging
		sv.hanging = nil
		return ended.Wait()
	case <-sv.coord.Context().Done():
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
