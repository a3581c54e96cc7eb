package hook

import (
	"context"
	"fmt"
	"time"

	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/session"
)

// GlobalStepWaiter is a Hook that makes the training wait, before its first
// call, until the global step has reached a value, so that replicas begin one
// after another.
type GlobalStepWaiter struct {
	Funcs
	WaitUntilStep int64 // zero or less: it does not wait
	// Poll is the interval between two checks. Zero means half a second.
	Poll time.Duration

	attachment
	started bool
}

// Begin refuses to wait for a step that is never reached.
func (h *GlobalStepWaiter) Begin(ctx context.Context, s session.Session) error {
	h.started = h.WaitUntilStep <= 0
	if err := h.check("GlobalStepWaiter", nil); err != nil {
		return err
	}
	if _, err := h.run.GlobalStep(ctx); err != nil {
		return fmt.Errorf("GlobalStepWaiter: %w", err)
	}
	return h.Funcs.Begin(ctx, s)
}

// BeforeRun waits. A stop ends that.
func (h *GlobalStepWaiter) BeforeRun(ctx context.Context, _ *RunContext) (*RunArgs, error) {
	poll := h.Poll
	if poll <= 0 {
		poll = 500 * time.Millisecond
	}
	for waited := false; !h.started; waited = true {
		step, err := h.run.GlobalStep(ctx)
		switch {
		case err != nil:
			return nil, err
		case step >= h.WaitUntilStep:
			h.started = true
			return nil, nil
		case !waited:
			h.logger().Info("waiting for the global step", "until", h.WaitUntilStep, "step", step)
		}
		if !coord.Sleep(h.run.Context(), poll) {
			return nil, context.Canceled
		}
	}
	return nil, nil
}

// AfterRun does nothing.
func (h *GlobalStepWaiter) AfterRun(context.Context, *RunContext, *RunValues) error { return nil }
