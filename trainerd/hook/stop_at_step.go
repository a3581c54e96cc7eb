package hook

import (
	"context"
	"fmt"

	"github.com/trainerd/trainerd/trainerd/session"
)

// StopAtStep is a Hook that ends the training at a step, cleanly.
type StopAtStep struct {
	Funcs
	// LastStep is the step to end at. A run that begins there ends after its
	// first step.
	LastStep int64
	// NumSteps is, instead of LastStep, how many steps to make from the one at
	// which the run begins. A hook that does not know where a run begins counts
	// from its first step.
	NumSteps int64

	first int64 // the step at which the run begins, if known
	told  bool
	last  int64 // as NumSteps has it, if known
	known bool  // last is
}

// Attach makes the hook count from where the run begins.
func (h *StopAtStep) Attach(r Run) { h.first, h.told = r.StepsDone(), true }

// Begin refuses a hook that does not say when to end, or says it twice.
func (h *StopAtStep) Begin(ctx context.Context, s session.Session) error {
	if (h.LastStep > 0) == (h.NumSteps > 0) {
		return fmt.Errorf("StopAtStep: LastStep is %d and NumSteps %d; set one of them", h.LastStep, h.NumSteps)
	}
	return h.Funcs.Begin(ctx, s)
}

// AfterStep ends the training at the last step.
func (h *StopAtStep) AfterStep(_ context.Context, _ session.Session, step int64) error {
	last := h.LastStep
	if h.NumSteps > 0 {
		last = h.lastOf(step)
	}
	if step >= last {
		return session.ErrCompleted
	}
	return nil
}

// lastOf returns the last step according to NumSteps. step is the first step that ends.
func (h *StopAtStep) lastOf(step int64) int64 {
	if h.known {
		return h.last
	}
	if !h.told {
		h.first = step - 1
	}
	h.last, h.known = h.first+h.NumSteps, true
	return h.last
}

// End has the hook count again in the next run. After a session that was lost it
// continues to count.
func (h *StopAtStep) End(ctx context.Context, s session.Session) error {
	h.known, h.told = false, false
	return h.Funcs.End(ctx, s)
}
