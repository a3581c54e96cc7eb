package hook

import (
	"context"
	"errors"
	"time"

	"github.com/trainerd/trainerd/trainerd/session"
)

// StepCounter is a Hook that writes how many steps the training makes per
// second, as the step counter of the standard services does, but that one only
// by time. Set Supervisor.SaveSummariesEvery to a negative value to have only
// one of them.
//
// It warns once if the training runs ops but never raises its step.
type StepCounter struct {
	Funcs
	Trigger // by default each 100 steps

	attachment
	seen  int64     // step at the last look
	step  int64     // of the last point
	at    time.Time // of the last point, zero before the first step
	calls int       // that ran ops, since the step was raised
	said  bool
}

// staleCalls is how many calls may run ops before it is said that the step
// stays.
const staleCalls = 30

// Begin makes the hook count from here.
func (h *StepCounter) Begin(ctx context.Context, s session.Session) error {
	if h.Steps <= 0 && h.Every <= 0 {
		h.Steps = 100
	}
	h.fired, h.at, h.calls, h.said, h.seen = false, time.Time{}, 0, false, session.NoStep
	if err := h.check("StepCounter", &h.Trigger); err != nil {
		return err
	}
	return h.Funcs.Begin(ctx, s)
}

// BeforeRun adds nothing.
func (h *StepCounter) BeforeRun(context.Context, *RunContext) (*RunArgs, error) { return nil, nil }

// AfterRun counts the steps of a session that counts them.
func (h *StepCounter) AfterRun(ctx context.Context, c *RunContext, _ *RunValues) error {
	step, err := c.StepAfter(ctx)
	switch {
	case errors.Is(err, ErrNoStep):
		return nil
	case err != nil:
		return err
	}
	if len(c.Args.Targets) > 0 {
		h.calls++
	}
	if h.calls > staleCalls && step == h.seen && !h.said {
		h.said = true
		h.logger().Warn("it seems that the global step has not been increased; pass it to the optimizer's minimize or apply_gradients",
			"step", step, "calls", h.calls)
	}
	return h.note(ctx, step)
}

// AfterStep counts the steps that StepDone reports.
func (h *StepCounter) AfterStep(ctx context.Context, _ session.Session, step int64) error {
	return h.note(ctx, step)
}

// note writes a point if it is time.
func (h *StepCounter) note(ctx context.Context, step int64) error {
	if step == h.seen {
		return nil
	}
	h.seen, h.calls = step, 0
	elapsed, due := h.Due(step)
	if !due {
		return nil
	}
	first, steps, events := h.at.IsZero(), step-h.step, h.run.Events()
	h.step, h.at = step, time.Now()
	if first || steps <= 0 || elapsed <= 0 || events == nil {
		return nil
	}
	return events.AddScalar(ctx, h.run.StepName()+"/sec", float64(steps)/elapsed.Seconds(), step)
}
