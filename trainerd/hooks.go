package trainerd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// stepTracker wraps each call of a training's session: it calls the hooks, and finds out when a
// step has ended if the training does not call StepDone.
type stepTracker struct {
	sv    *Supervisor
	run   *run
	hooks []hook.RunHook
	seen  hook.Run // the run as hooks see it
	step  string   // name of the variable that counts the steps, "" for none
	value string   // the tensor that has its value, "" if only a VariableStore knows it

	reported atomic.Bool // the training calls StepDone itself

	// mu is held from the end of a call until its hooks have returned. Calls at
	// the same time, and those of hooks, do not wait for it.
	mu      sync.Mutex
	pending bool  // the first step has ended, and StepDone may come yet
	counts  bool  // it did not come: the tracker calls it
	ended   error // why the training has ended, nil before
}

// newStepTracker returns the tracker of a run, or nil if nothing needs one.
func (sv *Supervisor) newStepTracker(r *run) *stepTracker {
	t := &stepTracker{sv: sv, run: r, seen: hookRun{sv, r}}
	for _, h := range sv.Hooks {
		if rh, ok := h.(hook.RunHook); ok {
			t.hooks = append(t.hooks, rh)
		}
	}
	if len(sv.Hooks) > 0 || sv.SaveModelSteps > 0 && r.checkpoints != nil {
		t.step = r.plan.globalStep
		t.value = graph.Collections{Meta: r.plan.meta}.ReadableTensor(t.step)
	}
	if t.step == "" && len(t.hooks) == 0 {
		return nil
	}
	return t
}

// wants reports whether the tracker follows calls with this context. It costs next to nothing for a
// nil tracker, and if the training reports its steps and no hook takes part in calls.
func (t *stepTracker) wants(ctx context.Context) bool {
	if t == nil || len(t.hooks) == 0 && t.reported.Load() {
		return false
	}
	return ctx.Value(stepScopeKey{}) != nil
}

// readStep reads the global step. It is fetched where it can be: a snapshot would
// wait for all other steps to end.
func (t *stepTracker) readStep(ctx context.Context, s session.Session) (int64, error) {
	if t.value == "" {
		return session.ReadStep(ctx, s, t.step)
	}
	out, err := s.Run(ctx, nil, []string{t.value}, nil)
	if err != nil || len(out) != 1 {
		return session.NoStep, errors.Join(err, fmt.Errorf("reading the global step %s", t.value))
	}
	return session.ScalarInt(out[0])
}

// call runs a step with its hooks. ctx is the training's, step the step's.
func (t *stepTracker) call(ctx, step context.Context, s session.Session, args hook.RunArgs) ([]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	if err := t.settle(ctx); err != nil {
		return nil, nil, err
	}
	c := hook.NewRunContext(t.seen, s, args)
	out, meta, err := c.Call(step, t.hooks)
	if err != nil {
		return out, meta, err
	}
	return out, meta, t.noteStep(ctx, step, c)
}

// settle does what was postponed to the beginning of the next call: a training that has ended stays
// ended, and a first step that nobody reported is counted.
func (t *stepTracker) settle(ctx context.Context) error {
	if t.reported.Load() || t.isQuiet(ctx) || !t.mu.TryLock() {
		return nil
	}
	defer t.mu.Unlock()
	return t.settleLocked(ctx)
}

// isQuiet reports whether a context is that of WithoutSaves. A step made there is counted
// afterwards: a save that may be due would wait for its own caller.
func (t *stepTracker) isQuiet(ctx context.Context) bool {
	return t.run.checkpoints != nil && ctx.Value(quietKey{}) == t.run.checkpoints
}

func (t *stepTracker) settleLocked(ctx context.Context) error {
	if t.ended != nil || !t.pending || t.reported.Load() {
		return t.ended
	}
	t.pending, t.counts = false, true
	reading, cancel := stepContext(ctx)
	defer cancel()
	step, err := t.readStep(reading, t.run.sess)
	if err != nil || step == t.run.stepsDone.Load() {
		return err
	}
	if err = t.stepDone(ctx, step); err != nil && t.sv.coord.EndsCleanly(err) {
		t.ended = err
	}
	return err
}

// stepDone counts a step that the training has not reported. It is not an error if no save begins
// because of a stop: the final save follows, and the training still gets the results of the step.
func (t *stepTracker) stepDone(ctx context.Context, step int64) error {
	err := t.sv.stepDone(ctx, t.run, step)
	if ctx.Err() != nil && isCancellation(err) {
		return nil
	}
	return err
}

// noteStep calls stepDone when a call has changed the step. After the first change it waits for the
// next call: a training that reports its steps itself may first store something, such as the loss,
// that its hooks need.
func (t *stepTracker) noteStep(ctx, stepCtx context.Context, c *hook.RunContext) error {
	if t.step == "" || t.reported.Load() || !t.mu.TryLock() {
		return nil
	}
	defer t.mu.Unlock()
	step, err := c.StepAfter(stepCtx)
	if err != nil || step == t.run.stepsDone.Load() {
		return err
	}
	if !t.counts || t.isQuiet(ctx) {
		t.pending = true
		return nil
	}
	err = t.stepDone(ctx, step)
	if err != nil && t.sv.coord.EndsCleanly(err) {
		t.ended = err // the call itself was good
		t.sv.endFor(err)
		return nil
	}
	return err
}

// reportedStep records that the training has called StepDone. It reports whether the step is known
// already.
func (t *stepTracker) reportedStep(step int64) (known bool) {
	if t == nil || t.reported.Swap(true) || !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	return t.counts && step == t.run.stepsDone.Load()
}

// finish counts a first step that was also the last one, and returns why the training has ended, or
// nil if it ended by itself.
func (t *stepTracker) finish(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.settleLocked(ctx)
}

var _ hook.Run = hookRun{}
