package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// ErrNotRunning says that no program is running that could fulfil the request.
var ErrNotRunning = errors.New("the program is not running at the moment")

var (
	errPaused = errors.New("the program is paused and cannot save; `resume` first")
	errEnding = errors.New("the program is being stopped")
	// errScanning is for requests that come too early to be handled.
	errScanning = fmt.Errorf("%w: before it starts, the checkpoints in the logdir are read; try again later", ErrNotRunning)
)

// request is something that the goroutine of Run is asked to do.
type request struct {
	do     func(r *run) error
	answer chan<- error // has room
}

// inbox takes the requests to a run, until closed is closed. The zero inbox belongs to a run that
// does not take any yet.
type inbox struct {
	requests chan request
	closed   chan struct{}          // closed
	waits    atomic.Pointer[string] // what the run waits for, nil for nothing that is known
}

// requestTimeout is how long a request waits to be taken. A scan for checkpoints may take seconds.
const requestTimeout = 10 * time.Second

// busy says why a request is not taken.
func (h *inbox) busy() error {
	what := "the disk of the logdir"
	if known := h.waits.Load(); known != nil {
		what = *known
	}
	return fmt.Errorf("the run waits for %s, and hears no requests meanwhile; try again later", what)
}

// setInbox sets the inbox for requests, nil for none.
func (sv *Supervisor) setInbox(h *inbox) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.current = h
}

// ask makes the goroutine of Run do something.
func (sv *Supervisor) ask(ctx context.Context, do func(r *run) error) error {
	sv.mu.Lock()
	h := sv.current
	sv.mu.Unlock()
	switch {
	case h == nil:
		return ErrNotRunning
	case h.requests == nil:
		return errScanning
	}
	answer := make(chan error, 1)
	select {
	case h.requests <- request{do, answer}:
		return <-answer
	case <-time.After(requestTimeout):
		return h.busy()
	case <-h.closed:
		return ErrNotRunning
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Save makes the program write a checkpoint, with SaveSignal, and waits for it.
func (sv *Supervisor) Save(ctx context.Context) (Checkpoint, error) {
	if err := sv.saveable(); err != nil {
		return Checkpoint{}, err
	}
	saved := make(chan Checkpoint, 1)
	err := sv.ask(ctx, func(r *run) error {
		switch {
		case !r.attempt.isRunning():
			return ErrNotRunning
		case r.attempt.paused:
			return errPaused
		}
		return r.addSaver(saved)
	})
	if err != nil {
		return Checkpoint{}, err
	}
	select {
	case c, ok := <-saved:
		if !ok {
			return Checkpoint{}, errors.New("the program has ended without writing a checkpoint")
		}
		return c, nil
	case <-ctx.Done():
		return Checkpoint{}, ctx.Err()
	}
}

// saver waits for a checkpoint that was asked for.
type saver struct {
	saved chan<- Checkpoint // has room
	asked time.Time
	step  int64 // that the program had reported then, -1 for none
}

// addSaver makes the program save, unless it was asked to end, which includes a save.
func (r *run) addSaver(saved chan<- Checkpoint) error {
	s := saver{saved, time.Now(), r.attempt.step}
	if e := r.attempt.ending; e != nil {
		s.asked = e.begun
	} else if err := r.askToSave(); err != nil {
		return err
	}
	r.savers = append(r.savers, s)
	return nil
}

// answerSavers answers the calls of Save that a checkpoint fulfils.
func (r *run) answerSavers(c Checkpoint) {
	r.savers = slices.DeleteFunc(r.savers, func(s saver) bool {
		if r.precedes(c, s.asked, s.step) {
			return false
		}
		s.saved <- c
		return true
	})
}

// precedes reports whether a checkpoint that was found after a request to save does not answer it,
// because it was written, or begun in the background, before the request: it lacks more of the
// steps that had been reported by then than the one by which a program may count ahead.
func (r *run) precedes(c Checkpoint, asked time.Time, step int64) bool {
	if r.namesReports() && lacksByName(c, step) {
		return true
	}
	isOlder := c.Saved.Add(inFlight).Before(asked) && !c.FirstFound().At.After(asked.Add(r.scanEvery())) // the clock of a disk may be late
	return isOlder && (step < 0 || r.lacksSteps(c, step-1))
}

// lacksByName reports whether the name of a checkpoint shows that it lacks steps up to the given
// one, even if the program counts one ahead.
func lacksByName(c Checkpoint, step int64) bool { return c.NamesStep() && c.Step < step-1 }

// namesReports reports whether a checkpoint has shown that names and reports count the same steps.
func (r *run) namesReports() bool {
	return slices.ContainsFunc(r.store.Known(), func(c Checkpoint) bool { return c.ShowsStep() })
}

// Pause suspends the program and its processes, on all nodes, until Resume. If the program ends
// meanwhile, it is not started again before Resume; a stop continues it, so that it can save. The
// error is an [*UnpublishedError] if the other nodes cannot be told because the disk fails.
func (sv *Supervisor) Pause(ctx context.Context) error {
	return sv.ask(ctx, func(r *run) error {
		switch {
		case !r.attempt.isRunning() && r.paused:
			return r.untold()
		case r.attempt.process != nil && r.attempt.over: // on other nodes it comes to its end: the start after that waits
			r.paused = true
			return nil
		case r.attempt.process == nil: // the next start is due
			r.holdStart()
			return r.untold()
		case r.attempt.ending != nil:
			return errEnding // it would be killed in the middle of its save
		}
		if err := r.sendAll(system.SigStop); err != nil {
			return err
		}
		r.setPaused(true)
		return r.untold()
	})
}

// Resume continues a program that Pause has stopped. The error is an [*UnpublishedError] if the other
// nodes cannot be told because the disk fails.
func (sv *Supervisor) Resume(ctx context.Context) error {
	return sv.ask(ctx, func(r *run) error {
		if !r.attempt.isRunning() && !r.paused {
			return cmp.Or(r.untold(), ErrNotRunning)
		}
		r.attempt.lastProgress = time.Now()
		r.setPaused(false)
		if !r.attempt.isRunning() {
			return r.untold()
		}
		return errors.Join(r.sendAll(system.SigCont), r.untold())
	})
}

// setPaused begins or ends a pause, on all nodes.
func (r *run) setPaused(on bool) {
	r.paused, r.attempt.paused = on, on
	r.publish(r.job.Phase, "")
	r.observer.Paused(on)
}

// holdStart lets no start begin before Resume.
func (r *run) holdStart() {
	r.paused, r.attempt.paused = true, true // the other nodes learn the latter
	r.publish(nodeEnded, "")
	r.observer.Paused(true)
	r.log.Info("the job is paused; the program starts when it is resumed")
}

// unfreeze continues a paused program that has to end.
func (r *run) unfreeze() {
	if r.attempt.paused {
		r.attempt.paused = false
		r.checkSignal(r.sendAll(system.SigCont))
	}
}

// mostStops bounds how often a pause searches for processes of the program that it has not stopped
// yet.
const mostStops = 10

// sendAll sends a signal to all processes of the program on this node, even to those in their own
// sessions, such as the workers of torchrun.
func (r *run) sendAll(sig syscall.Signal) error {
	err := r.attempt.process.send(sig)
	var before []int
	for range mostStops {
		pids := r.system().Leftovers(r.groupDir)
		r.system().SignalAll(r.groupDir, pids, sig)
		if sig != system.SigStop || slices.Equal(pids, before) {
			break
		}
		before = pids // one of them may have begun another before it was stopped
	}
	return err
}

// Keep protects the checkpoint of a step from being deleted.
func (sv *Supervisor) Keep(ctx context.Context, step int64) (kept Checkpoint, err error) {
	err = sv.ask(ctx, func(r *run) error {
		i := slices.IndexFunc(r.store.Known(), func(c Checkpoint) bool { return c.Step == step })
		if i < 0 || step == found.NoStep {
			return fmt.Errorf("there is no checkpoint of step %d", step)
		}
		kept = r.store.Known()[i]
		return r.store.Pin(kept)
	})
	return kept, err
}

// Note writes a text into the events file, at the current step.
func (sv *Supervisor) Note(ctx context.Context, tag, text string) error {
	return sv.ask(ctx, func(r *run) error {
		r.events.text(r.ectx, tag, text, max(r.attempt.step, 0))
		return nil
	})
}
