package trainerd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// lockEvery is the time between two checks of the lock, in addition to those of saves.
const lockEvery = 5 * time.Second

// logdirWatch knows where a run may write: in its logdir, as long as it holds the lock.
type logdirWatch struct {
	sv   *Supervisor
	lock *logdir.Lock

	mu       sync.Mutex
	place    string // where the logdir is by now; "" for nowhere
	relocked int    // how often its lock file was made again
	lost     error
}

// newLogdirWatch returns the logdirWatch of a session for which the logdir was locked.
func (sv *Supervisor) newLogdirWatch(r *run) *logdirWatch {
	return &logdirWatch{sv: sv, lock: r.lock, place: sv.Logdir, relocked: r.lock.Relocked()}
}

// dir returns the directory to write to, or why there is none. The first call after the loss of the
// logdir requests the end of the run.
func (h *logdirWatch) dir() (string, error) {
	if h.lock == nil {
		return h.place, nil
	}
	place, relocked, err := h.look()
	if relocked && h.sv.OnRelock != nil {
		h.sv.OnRelock()
	}
	return place, err
}

// held is dir without the directory.
func (h *logdirWatch) held() error {
	_, err := h.dir()
	return err
}

// look is dir; it also reports whether the lock file was made again since the last call.
func (h *logdirWatch) look() (place string, relocked bool, err error) {
	err = h.lock.Held()
	times := h.lock.Relocked()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil && h.lost == nil:
		h.leave(err)
	case times > h.relocked:
		h.relocked, relocked = times, true
		h.renew()
	}
	if h.place == "" {
		return "", relocked, h.lost
	}
	return h.place, relocked, nil
}

// renew forgets what is gone with the lock file. The caller holds h.mu.
func (h *logdirWatch) renew() {
	r := h.sv.current()
	if r == nil {
		return
	}
	if r.checkpoints != nil {
		dir := h.lock.Dir()
		r.checkpoints.moveTo(dir, dir) // those that exist
	}
	if r.events != nil && !r.events.HasFile() {
		r.events.Restart(r.stepsDone.Load() + 2) // the points of the step that is being made may be there
	}
}

// leave ends the run, after a save if that is safe. The caller holds h.mu.
func (h *logdirWatch) leave(err error) {
	var lost *logdir.LostError
	if !errors.As(err, &lost) {
		return
	}
	h.place, h.lost = lost.Place, err
	if r := h.sv.current(); r != nil && r.checkpoints != nil {
		r.checkpoints.moveTo(lost.Logdir, lost.Place)
	}
	h.sv.coord.RequestStop(err)
}

// watch checks the lock until ctx is done, so that a run that saves seldom learns early that it has
// lost its logdir.
func (h *logdirWatch) watch(ctx context.Context) error {
	for coord.Sleep(ctx, lockEvery) {
		h.dir() // it asks for the stop itself
	}
	return nil
}

// LogdirHeld returns a *logdir.LostError once the logdir of the current run was
// moved or deleted, or belongs to another run. Code that writes to the logdir
// directly must call it first.
func (sv *Supervisor) LogdirHeld() error {
	r := sv.current()
	if r == nil || r.lock == nil {
		return nil
	}
	r.home.dir()
	r.home.mu.Lock()
	defer r.home.mu.Unlock()
	return r.home.lost
}
