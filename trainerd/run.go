package trainerd

import (
	"context"
	"errors"
	"time"

	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Run prepares a session, runs train with it, and stops everything in order,
// saving a final checkpoint.
//
// The context passed to train is done once a stop is requested: by ctx, by a
// failed service, or by RequestStop. train should then return between two
// steps. The context that train passes to its session does not interrupt a step
// that has begun until the grace period has ended; see [StepContext].
//
// Run returns nil when train returned nil, [session.ErrOutOfRange] or [session.ErrCompleted], and
// when ctx requested the stop: then train may also return ctx's error (cancelled, or past its
// deadline) or its cause. Otherwise it returns the first error of train or a service, with later
// ones after it. If train failed or anything panicked, no final checkpoint is written: the previous
// one stays current. See MaxRestarts for sessions that are lost.
func (sv *Supervisor) Run(ctx context.Context, train func(ctx context.Context, s session.Session) error) error {
	if train == nil {
		return errors.New("Supervisor.Run needs a function that trains")
	}
	if !sv.busy.CompareAndSwap(false, true) {
		return errBusy
	}
	defer sv.busy.Store(false)
	sv.stopAsked.Store(false)
	sv.riskTold.Store(false)
	sv.stats.open()
	defer sv.stats.close()
	sv.rewound, sv.rewoundIn = nil, nil
	return sv.runSessions(ctx, train)
}

// runSessions runs one session after another until the training ends, all under one lock
// on the logdir.
func (sv *Supervisor) runSessions(ctx context.Context, train func(ctx context.Context, s session.Session) error) (err error) {
	defer func() { err = errors.Join(err, sv.unlock()) }()
	pause := firstRestart
	var back rewinder
	furthest := int64(session.NoStep)
	for restarts := 0; ; restarts++ {
		err := sv.runOnce(ctx, train)
		if sv.progressed(&furthest) {
			restarts, pause = 0, firstRestart
		}
		if ctx.Err() != nil || sv.stopAsked.Load() {
			return sv.stopped(err)
		}
		sv.settleRewind()
		if sv.rewind(ctx, &back, err) {
			continue
		}
		if !isLost(err) || sv.MaxRestarts >= 0 && restarts >= sv.MaxRestarts {
			return err
		}
		sv.log().Warn("session was lost; restarting from the last checkpoint", "err", err, "retry_in", pause)
		sv.stats.restarting()
		if !sv.pause(ctx, pause) {
			return sv.stopped(err)
		}
		pause = min(2*pause, maxRestart)
	}
}

// stopped returns the error of a run that is stopped. A worker whose session was lost by then has
// nothing to save.
func (sv *Supervisor) stopped(err error) error {
	if sv.NonChief && isLost(err) {
		return nil
	}
	return err
}

// progressed reports whether the session that has ended advanced the training: it saved a
// checkpoint, or it made more steps than all before, in a model that another process saves or that
// outlives its sessions.
func (sv *Supervisor) progressed(furthest *int64) bool {
	if _, saved := sv.LastSave(); saved {
		return true
	}
	r := sv.current()
	if r == nil || !sv.NonChief && (r.prepared == nil || !r.prepared.Adopted) {
		return false
	}
	step := r.stepsDone.Load()
	if r.stepsMade.Load() == 0 || step <= *furthest {
		return false
	}
	*furthest = step
	return true
}

// pause waits before another session, and reports whether there is to be one: no
// stop was requested.
func (sv *Supervisor) pause(ctx context.Context, d time.Duration) bool {
	sv.clearStop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(sv.coord.Context(), cancel)()
	return coord.Sleep(ctx, d)
}

// Pauses before a session that was lost is replaced.
const (
	firstRestart = time.Second
	maxRestart   = time.Minute
)

// isLost reports whether an error means that the session is gone, and not that the training has
// failed or that waiting for a session was given up.
func isLost(err error) bool {
	if errors.Is(err, session.ErrDeadlineExceeded) {
		return false
	}
	return errors.Is(err, session.ErrAborted) || errors.Is(err, session.ErrUnavailable)
}

func (sv *Supervisor) runOnce(ctx context.Context, train func(ctx context.Context, s session.Session) error) error {
	defer sv.coord.AskedBy(ctx)()
	sess, err := sv.beginRun(ctx, false)
	switch {
	case errors.Is(err, errStopped):
		return sv.coord.Err()
	case err != nil && ctx.Err() != nil && (isCancellation(err) || errors.Is(err, context.Cause(ctx))):
		return nil // stopped before there was anything to save
	case err != nil:
		return err
	}
	r := sv.current()
	defer r.sess.Close()
	returned := false
	defer func() {
		if !returned { // train has left by runtime.Goexit
			sv.endFor(&coord.PanicError{Name: "train", Value: coord.ErrGoexit})
			sv.Stop()
		}
	}()
	unlink := context.AfterFunc(ctx, func() { sv.coord.RequestStop(nil) })
	defer unlink()

	trainCtx, cancel := trainContext(ctx, &sv.coord, sv.stopGrace(), &r.points)
	defer cancel()
	sv.stats.training()
	err = coord.Guard("train", func() error {
		defer sv.awaitTraining()()
		return sv.trainWithHooks(trainCtx, r, sess, train)
	})
	returned = true
	sv.stats.stopping()
	if ctx.Err() != nil {
		if !errors.Is(err, session.ErrCompleted) {
			sv.stats.stopped(StopperOf(ctx))
		}
		sv.coord.RequestStop(nil) // the linked call may not have come yet
	}
	sv.endFor(err)
	return sv.Stop()
}

// trainWithHooks calls the hooks around the training. End is called even after a stop request, so
// its context is that of the steps.
func (sv *Supervisor) trainWithHooks(ctx context.Context, r *run, s session.Session, train func(ctx context.Context, s session.Session) error) error {
	if err := sv.afterRewind(ctx, r); err != nil {
		return err
	}
	for _, h := range sv.Hooks {
		if a, ok := h.(hook.Attacher); ok {
			a.Attach(hookRun{sv, r})
		}
		if err := h.Begin(ctx, r.hooked); err != nil {
			return err
		}
	}
	err := train(ctx, s)
	if err == nil {
		err = r.steps.finish(ctx)
	}
	if err != nil && !sv.coord.EndsCleanly(err) {
		return err
	}
	end, cancel := stepContext(ctx)
	defer cancel()
	for _, h := range sv.Hooks {
		if hookErr := h.End(end, r.hooked); hookErr != nil {
			return hookErr
		}
	}
	return err
}

func isCancellation(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, session.ErrCancelled)
}
