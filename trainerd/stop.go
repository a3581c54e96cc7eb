package trainerd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Coordinator returns the coordinator of the services.
func (sv *Supervisor) Coordinator() *coord.Coordinator { return &sv.coord }

// ShouldStop reports whether the training should end.
func (sv *Supervisor) ShouldStop() bool { return sv.coord.ShouldStop() }

// RequestStop requests the end of the run. An error that is not a clean end
// means that the training has failed: there will be no final checkpoint.
func (sv *Supervisor) RequestStop(cause error) {
	if cause == nil {
		sv.stopAsked.Store(true)
	}
	sv.endFor(cause)
}

// endFor is RequestStop for causes within the run itself.
func (sv *Supervisor) endFor(cause error) {
	if r := sv.current(); r != nil && cause != nil && !sv.coord.EndsCleanly(cause) {
		r.failed.Store(true)
	}
	sv.coord.RequestStop(cause)
}

// UntilStop calls step repeatedly until a stop is requested or step fails, and
// returns step's error.
func (sv *Supervisor) UntilStop(step func() error) error {
	for !sv.ShouldStop() {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// WaitForStop waits until a stop is requested, or until ctx is done. It reports
// whether a stop was requested.
func (sv *Supervisor) WaitForStop(ctx context.Context) bool { return sv.coord.WaitForStop(ctx) }

// StopOnError runs f in the calling goroutine; its error requests a stop and is
// returned by Stop and Run.
func (sv *Supervisor) StopOnError(name string, f func(ctx context.Context) error) {
	sv.coord.StopOnError(name, f)
}

func (sv *Supervisor) stopGrace() time.Duration {
	if sv.StopGrace == 0 {
		return DefaultStopGrace
	}
	return max(sv.StopGrace, 0)
}

// StopRequest is the cause for cancelling a run's context, for
// [context.CancelCauseFunc]: who or what requests the stop, such as "SIGTERM".
// It counts as [context.Canceled].
type StopRequest string

func (s StopRequest) Error() string { return "stop requested by " + string(s) }

// Is reports whether target is [context.Canceled].
func (StopRequest) Is(target error) bool { return target == context.Canceled }

// StopperOf returns who has cancelled a context, "" if unknown.
func StopperOf(ctx context.Context) string {
	cause := context.Cause(ctx)
	var request StopRequest
	switch {
	case errors.As(cause, &request):
		return string(request)
	case cause == context.Canceled:
		return ""
	}
	return cause.Error()
}

// Stop ends the run: it requests the stop, waits for the services up to the
// grace period, saves a final checkpoint unless the training has failed, writes
// SessionLog STOP and closes the events file. It returns the error that Run
// returns. It does not close the session.
//
// Stop must not be called by a service. Calling it again returns the same
// error.
func (sv *Supervisor) Stop() error {
	sv.coord.RequestStop(nil)
	r := sv.current()
	if r == nil {
		return sv.coord.Join(sv.stopGrace())
	}
	r.stop.Do(func() { r.stopErr = sv.end(r) })
	return r.stopErr
}

func (sv *Supervisor) end(r *run) error {
	defer func() {
		r.endPreparation(nil)
		r.ended.Store(true)
		if r.alone {
			sv.busy.Store(false)
		}
	}()
	r.points.end()
	sv.stats.stopping()
	idle, unanswered := sv.awaitSave(r.checkpoints) // the grace period is not for a save under way
	errs := []error{sv.await("the services to end", func() error { return sv.coord.Join(sv.stopGrace()) }), unanswered}
	sv.stats.ended(r.lastStep())
	if r.checkpoints != nil && idle && r.services.Load() && sv.saves() {
		err := sv.finalSave(r, errs[0])
		var hangs *coord.StopError
		idle = !errors.As(err, &hangs)
		errs = append(errs, err)
	}
	err := sv.lastFiles(r, errors.Join(errs...), idle)
	var hangs *coord.StopError
	idle = idle && !errors.As(err, &hangs)
	errs = append(errs, err)
	if !idle {
		sv.hanging = r.settled()
	}
	if r.alone {
		errs = append(errs, sv.unlock())
	}
	return errors.Join(errs...)
}

// lastStep returns the step that the model has reached: the session's, or the last one reported by
// StepDone if the session can no longer be read.
func (r *run) lastStep() int64 {
	if r.prepared == nil || r.plan.globalStep == "" {
		return session.NoStep
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelGrace)
	defer cancel()
	if step, err := session.ReadStep(ctx, r.sess, r.plan.globalStep); err == nil {
		return step
	}
	return r.stepsDone.Load()
}

// await calls f, and logs what it waits for if that takes long.
func (sv *Supervisor) await(what string, f func() error) error {
	return logging.Await(sv.log().Warn, what, f)
}

// awaitTraining logs, from the stop request until end is called, that the training has not returned
// yet.
func (sv *Supervisor) awaitTraining() (end func()) {
	waiting := make(chan func(), 1)
	unlink := context.AfterFunc(sv.coord.Context(), func() {
		waiting <- logging.Waiting(sv.log().Warn, "the training to end its step")
	})
	return func() {
		if !unlink() {
			(<-waiting)()
		}
	}
}

// finalAttempts is how often the final save is tried: there is no later tick.
const finalAttempts = 3

// cancelGrace is how long a cancelled final save may take to return.
const cancelGrace = time.Second

// saveGrace returns how long a save may take once a stop was requested, and
// false if it may take as long as it likes.
func (sv *Supervisor) saveGrace() (time.Duration, bool) {
	if sv.SaveGrace != 0 {
		return sv.SaveGrace, sv.SaveGrace > 0
	}
	return max(sv.stopGrace(), 10*sv.stats.longestSave()), true
}

// awaitSave waits for the save in progress, and reports whether it has ended. The error says that
// it waits for the session.
func (sv *Supervisor) awaitSave(c *checkpointer) (idle bool, err error) {
	if c == nil {
		return true, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	save := coord.Detach("save under way", func() error {
		if err := c.acquire(ctx); err != nil {
			return err
		}
		c.release()
		return nil
	})
	if grace, limited := sv.saveGrace(); limited && !c.endsWithin(grace, save) {
		return false, c.unanswered(grace)
	}
	return true, save.Wait()
}

// endsWithin waits for a save for a grace period, which starts over when the session has answered,
// because only then the writing to the disk begins.
func (c *checkpointer) endsWithin(grace time.Duration, save *coord.Detached) bool {
	if save.DoneWithin(grace) {
		return true
	}
	c.mu.Lock()
	asking, answered := c.asking, c.answered
	c.mu.Unlock()
	return !asking && save.DoneWithin(grace-time.Since(answered))
}

// finalSave writes the last checkpoint of a run, unless the run has failed with
// cause. A disk that hangs does not keep it from ending: the error then is a
// *StopError that says where the save is.
func (sv *Supervisor) finalSave(r *run, cause error) error {
	var lost *logdir.LostError
	if errors.As(cause, &lost) && lost.Place == "" {
		return nil // there is no place for one, as cause says
	}
	var panicked *coord.PanicError
	if r.failed.Load() || errors.As(cause, &panicked) {
		sv.log().Warn("no final checkpoint, because the run failed", "err", cause)
		return nil
	}
	ctx, giveUp := context.WithCancelCause(context.Background())
	defer giveUp(nil)
	save := coord.Detach("final checkpoint", func() error { return r.checkpoints.saveFinal(ctx) })
	if grace, limited := sv.saveGrace(); limited && !r.checkpoints.endsWithin(grace, save) {
		giveUp(r.checkpoints.late(grace)) // stops it between two tensors
		if !save.DoneWithin(cancelGrace) {
			r.straggling = append(r.straggling, save)
			return save.Straggling(grace)
		}
	}
	if err := save.Wait(); err != nil {
		return fmt.Errorf("final checkpoint: %w", err)
	}
	return nil
}

// late is the error of a save that is given up after a grace period.
func (c *checkpointer) late(grace time.Duration) error {
	if err := c.unanswered(grace); err != nil {
		return err
	}
	return fmt.Errorf("given up after %v", grace)
}

// unanswered is the error of a save that waits for the session at the end of a grace
// period, nil for any other. Such a session is lost, so that Run waits for its servers and
// saves with another one.
func (c *checkpointer) unanswered(grace time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asking {
		return nil
	}
	return &session.OpError{Code: tfpb.Code_UNAVAILABLE, Message: fmt.Sprintf("the session has not answered for %v", grace)}
}

// lastFiles closes the events file and writes the report of a run that ends with cause. A disk that
// hangs does not keep the run from ending here either; if a save already hangs, it waits only
// briefly.
func (sv *Supervisor) lastFiles(r *run, cause error, diskAnswers bool) error {
	defer logging.Waiting(sv.log().Warn, "the events file and the report")()
	files := coord.Detach("events file and report", func() error {
		err := sv.closeWriter(r)
		sv.stats.closed(errors.Join(cause, err))
		if sv.NonChief || sv.Logdir == "" || sv.NoReport {
			return err
		}
		if err := sv.writeReport(r); err != nil {
			sv.log().Warn("report could not be written", "err", err)
		}
		return err
	})
	grace, limited := sv.saveGrace()
	if !diskAnswers {
		grace, limited = cancelGrace, true
	}
	if limited && !files.DoneWithin(grace) {
		r.straggling = append(r.straggling, files)
		return files.Straggling(grace)
	}
	return files.Wait()
}

// saveFinal tries more than once, unless the session is gone.
func (c *checkpointer) saveFinal(ctx context.Context) error {
	pause := firstSaveRetry
	var failed error
	for attempt := 1; ; attempt++ {
		saved, err := c.save(ctx, ctx, requested)
		if err == nil {
			c.saver.AddSums(ctx, saved.Prefix)
			return nil
		}
		if ctx.Err() != nil && failed != nil {
			return fmt.Errorf("%w: %w", err, failed)
		}
		if attempt == finalAttempts || ctx.Err() != nil || errors.Is(err, session.ErrAborted) {
			return err
		}
		failed = err
		c.log.Error("final save failed; trying again", "err", err)
		coord.Sleep(ctx, pause)
		pause *= 2
	}
}
