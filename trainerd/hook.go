package trainerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Hook is called in the course of a run, always from the goroutine of the
// training. An error of Begin or AfterStep ends the training, as if it had
// failed with that error; ErrOutOfRange ends it cleanly.
type Hook interface {
	// Begin is called when the session is ready, before the first step.
	Begin(ctx context.Context, s session.Session) error
	// AfterStep is called by Supervisor.StepDone, with the number of steps done.
	AfterStep(ctx context.Context, s session.Session, step int64) error
	// End is called when the training has ended without a failure, before the
	// final checkpoint.
	End(ctx context.Context, s session.Session) error
}

// HookFuncs is a Hook of functions. Those that are nil do nothing.
type HookFuncs struct {
	BeginFunc     func(ctx context.Context, s session.Session) error
	AfterStepFunc func(ctx context.Context, s session.Session, step int64) error
	EndFunc       func(ctx context.Context, s session.Session) error
}

// Begin calls BeginFunc.
func (h HookFuncs) Begin(ctx context.Context, s session.Session) error {
	if h.BeginFunc == nil {
		return nil
	}
	return h.BeginFunc(ctx, s)
}

// AfterStep calls AfterStepFunc.
func (h HookFuncs) AfterStep(ctx context.Context, s session.Session, step int64) error {
	if h.AfterStepFunc == nil {
		return nil
	}
	return h.AfterStepFunc(ctx, s, step)
}

// End calls EndFunc.
func (h HookFuncs) End(ctx context.Context, s session.Session) error {
	if h.EndFunc == nil {
		return nil
	}
	return h.EndFunc(ctx, s)
}

// StopAtStep is a Hook that ends the training at a step, cleanly.
type StopAtStep struct {
	HookFuncs
	// LastStep is the step to end at. A run that begins there ends after its
	// first step.
	LastStep int64
	// NumSteps is, in place of LastStep, how many steps to make from the one at
	// which the run begins. A hook that does not know where a run begins counts
	// from its first step.
	NumSteps int64

	first int64 // the step at which the run begins, if known
	told  bool
	last  int64 // as NumSteps has it, zero before the first step
}

// stepsFrom is a Hook that counts the steps of a run from where it begins.
type stepsFrom interface{ stepsFrom(step int64) }

func (h *StopAtStep) stepsFrom(step int64) { h.first, h.told = step, true }

// Begin refuses a hook that does not say when to end, or says it twice.
func (h *StopAtStep) Begin(ctx context.Context, s session.Session) error {
	if (h.LastStep > 0) == (h.NumSteps > 0) {
		return fmt.Errorf("StopAtStep: LastStep is %d and NumSteps %d; set one of them", h.LastStep, h.NumSteps)
	}
	return h.HookFuncs.Begin(ctx, s)
}

// AfterStep ends the training at the last step.
func (h *StopAtStep) AfterStep(_ context.Context, _ session.Session, step int64) error {
	if h.NumSteps > 0 && h.last == 0 {
		if !h.told {
			h.first = step - 1
		}
		h.last = h.first + h.NumSteps
	}
	if step >= max(h.LastStep, h.last) {
		return session.ErrCompleted
	}
	return nil
}

// End has the hook count again in the next run. After a session that was lost it
// continues to count.
func (h *StopAtStep) End(ctx context.Context, s session.Session) error {
	h.last, h.told = 0, false
	return h.HookFuncs.End(ctx, s)
}

// LogEvery is a Hook that logs how the training goes: at its first step, and
// then as its trigger says.
type LogEvery struct {
	HookFuncs
	Trigger
	Logger *slog.Logger
	// Attrs, if not nil, returns what to log besides step and rate, such as the
	// loss that the training has stored.
	Attrs func() []slog.Attr
	// AtEnd logs once more when the training has ended without a failure.
	AtEnd bool

	last, logged int64
	seen         bool
}

// AfterStep logs if it is time.
func (h *LogEvery) AfterStep(ctx context.Context, _ session.Session, step int64) error {
	h.last = step
	elapsed, due := h.Due(step)
	if !due {
		return nil
	}
	attrs := []slog.Attr{slog.Int64("step", step)}
	if h.seen && elapsed > 0 {
		attrs = append(attrs, slog.Float64("steps_per_second", float64(step-h.logged)/elapsed.Seconds()))
	}
	h.log(ctx, attrs)
	h.logged, h.seen = step, true
	return nil
}

// End logs the last step.
func (h *LogEvery) End(ctx context.Context, _ session.Session) error {
	if h.AtEnd {
		h.log(ctx, []slog.Attr{slog.Int64("step", h.last)})
	}
	return nil
}

func (h *LogEvery) log(ctx context.Context, attrs []slog.Attr) {
	if h.Attrs != nil {
		attrs = append(attrs, h.Attrs()...)
	}
	logging.OrDiscard(h.Logger).LogAttrs(ctx, slog.LevelInfo, "training", attrs...)
}

// NaNError says that a loss is not a number, or infinite. The run ends without
// a final checkpoint, so the last one from before is the current one.
type NaNError struct {
	Step int64
	Loss float64
}

func (e *NaNError) Error() string {
	return fmt.Sprintf("the loss is %v at step %d; resume from an earlier checkpoint with a smaller learning rate", e.Loss, e.Step)
}

// NaNGuard is a Hook that ends the training with a [*NaNError] when the loss is
// not a finite number; see Supervisor.MaxRewinds for continuing.
type NaNGuard struct {
	HookFuncs
	// Loss returns the loss of the last step, which the training has stored.
	Loss func() float64
}

// Begin refuses a guard that has nothing to look at.
func (h *NaNGuard) Begin(ctx context.Context, s session.Session) error {
	if h.Loss == nil {
		return errors.New("NaNGuard: Loss is not set")
	}
	return h.HookFuncs.Begin(ctx, s)
}

// AfterStep checks the loss.
func (h *NaNGuard) AfterStep(_ context.Context, _ session.Session, step int64) error {
	if loss := h.Loss(); math.IsNaN(loss) || math.IsInf(loss, 0) {
		return &NaNError{Step: step, Loss: loss}
	}
	return nil
}

// Trigger decides when something that is done every so many steps, or every so
// often, is due. The first step is always due, and no step twice.
type Trigger struct {
	Steps int64         // zero or less: not by steps
	Every time.Duration // zero or less: not by time

	fired bool
	step  int64
	at    time.Time
}

// Due reports whether it is time at a step, and if so begins to wait again.
// Elapsed is the time since it was due before, zero the first time.
func (t *Trigger) Due(step int64) (elapsed time.Duration, due bool) {
	if !t.isDue(step) {
		return 0, false
	}
	now := time.Now()
	if t.fired {
		elapsed = now.Sub(t.at)
	}
	t.fired, t.step, t.at = true, step, now
	return elapsed, true
}

// isDue reports whether it is time at a step.
func (t *Trigger) isDue(step int64) bool {
	bySteps := t.Steps > 0 && step >= t.step+t.Steps
	byTime := t.Every > 0 && step != t.step && time.Since(t.at) >= t.Every
	return !t.fired || bySteps || byTime
}
