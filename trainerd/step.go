package trainerd

import (
	"context"
	"time"

	"github.com/trainerd/trainerd/trainerd/coord"
)

// StepDone records the end of a step, with the number of steps done so far. The
// training calls it between two steps, from the goroutine that runs them. It
// takes the checkpoints of SaveModelSteps, exactly at their steps: the variables
// are copied before it returns, and written in the background. If one call
// counts several steps, including a multiple of SaveModelSteps, the checkpoint
// is taken at that call.
//
// A training whose session counts its steps need not call it: if there are hooks, or SaveModelSteps
// is set, each call of the session that changes the step does so; the first step is counted at the
// next call. For that the step is read after each call, until the training first calls StepDone
// itself.
//
// If the previous checkpoint is still being written, StepDone waits for it.
//
// Write the summaries of a step before its StepDone: a run that resumes from a checkpoint of that
// step does not make them again, so a timed save of the step waits until its hooks have returned.
// It waits no longer than 10 s, and only until the training calls its session, or StepContext,
// again.
//
// The training should return its error, which may come from a hook. A step at
// which a hook fails is not saved.
func (sv *Supervisor) StepDone(ctx context.Context, step int64) error {
	r := sv.current()
	switch {
	case r == nil:
		return errNoRun
	case r.ended.Load():
		return errRunEnded
	}
	if r.steps.reportedStep(step) {
		return nil
	}
	return sv.stepDone(ctx, r, step)
}

func (sv *Supervisor) stepDone(ctx context.Context, r *run, step int64) error {
	before := r.stepsDone.Swap(step)
	r.stepsMade.Add(max(step-before, 1)) // at least this one, if the step was set back
	r.stepped.Do(func() { close(r.firstStepDone) })
	r.metrics.stepDone(step)
	for _, h := range sv.Hooks {
		if err := h.AfterStep(ctx, r.hooked, step); err != nil {
			return err
		}
	}
	r.points.written(step)
	if r.checkpoints == nil || sv.SaveModelSteps <= 0 || step/sv.SaveModelSteps <= before/sv.SaveModelSteps {
		return nil
	}
	defer r.stalled(time.Now())
	if !r.checkpoints.affordable() {
		return nil
	}
	return r.checkpoints.saveInBackground(ctx, &sv.coord)
}

// stepScope ties the context of a training to that of its steps.
type stepScope struct {
	train context.Context // done once a stop is asked for
	steps context.Context // done when the grace period has ended, or the training

	points *points
}

type stepScopeKey struct{}

// trainContext returns the context of the training: it has the values of ctx and is done once a
// stop is requested. A step in progress by then may still take the grace period. The beginning of
// each step is recorded in p.
func trainContext(ctx context.Context, c *coord.Coordinator, grace time.Duration, p *points) (context.Context, context.CancelFunc) {
	scope := &stepScope{points: p}
	steps, cancelSteps := context.WithCancel(context.WithoutCancel(ctx))
	train, cancelTrain := context.WithCancel(context.WithValue(steps, stepScopeKey{}, scope))
	scope.train, scope.steps = train, steps
	unlink := context.AfterFunc(c.Context(), func() {
		cancelTrain()
		coord.Sleep(steps, grace) // ends early with the training
		cancelSteps()
	})
	return train, func() {
		unlink()
		cancelTrain()
		cancelSteps()
	}
}

// StepContext returns the context for one step of a training, derived from the context that the
// training got. A stop requested during the step does not interrupt it: half a step would leave the
// model in a state that no undisturbed run ever has. It ends with the grace period, or when ctx
// ends for another reason.
//
// The session passed to a training already applies StepContext. cancel must be
// called when the step has ended.
func StepContext(ctx context.Context) (step context.Context, cancel context.CancelFunc) {
	if scope, ok := ctx.Value(stepScopeKey{}).(*stepScope); ok {
		scope.points.begin() // a save that this step has to wait for must not wait for its points
	}
	return stepContext(ctx)
}

// stepContext is StepContext for a call that may come from a hook, and then belongs to the previous
// step.
func stepContext(ctx context.Context) (step context.Context, cancel context.CancelFunc) {
	scope, ok := ctx.Value(stepScopeKey{}).(*stepScope)
	switch {
	case !ok:
		return ctx, func() {}
	case ctx == scope.train:
		return scope.steps, func() {} // the common case costs nothing
	}
	return scope.shield(ctx)
}

// shield makes a step's context from a context derived from the training's.
func (sc *stepScope) shield(ctx context.Context) (context.Context, context.CancelFunc) {
	step, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	cancelDeadline := func() {}
	if d, ok := ctx.Deadline(); ok {
		step, cancelDeadline = context.WithDeadline(step, d)
	}
	unlinkSteps := context.AfterFunc(sc.steps, func() { cancel(context.Cause(sc.steps)) })
	unlinkOwn := context.AfterFunc(ctx, func() {
		if sc.train.Err() == nil {
			cancel(context.Cause(ctx))
		}
	})
	return step, func() {
		unlinkSteps()
		unlinkOwn()
		cancelDeadline()
		cancel(nil)
	}
}
