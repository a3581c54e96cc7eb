package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/trainerd/trainerd/trainerd/session"
)

// SummarySaver is a Hook that computes summaries in the same step as the training, every N steps or
// seconds, and writes them. Set Supervisor.SummaryOp to None, so that the summary service does not
// write them too.
type SummarySaver struct {
	Funcs
	Trigger
	// Ops are the summary ops. Default: those of the graph, from the collection
	// summary_op, else summaries.
	Ops []string

	attachment
	step    int64 // after the last call
	known   bool  // step is
	fetched bool  // by the call under way
}

// Begin finds the summary ops.
func (h *SummarySaver) Begin(ctx context.Context, s session.Session) error {
	h.fired, h.known = false, false
	if err := h.check("SummarySaver", &h.Trigger); err != nil {
		return err
	}
	if len(h.Ops) == 0 {
		h.Ops = h.run.SummaryOps()
	}
	if len(h.Ops) == 0 {
		return errors.New("SummarySaver: the graph names no summary op; set Ops")
	}
	if _, err := h.run.GlobalStep(ctx); err != nil {
		return fmt.Errorf("SummarySaver: %w", err)
	}
	return h.Funcs.Begin(ctx, s)
}

// BeforeRun asks for the summaries when they are due after the next step.
func (h *SummarySaver) BeforeRun(context.Context, *RunContext) (*RunArgs, error) {
	h.fetched = !h.known || h.isDue(h.step+1)
	if !h.fetched {
		return nil, nil
	}
	return &RunArgs{Fetches: h.Ops}, nil
}

// AfterRun writes them.
func (h *SummarySaver) AfterRun(ctx context.Context, c *RunContext, v *RunValues) error {
	step, err := c.StepAfter(ctx)
	if err != nil {
		return err
	}
	h.step, h.known = step, true
	if !h.fetched {
		return nil
	}
	h.Due(step)
	return h.run.SummaryComputed(ctx, v.Results, step)
}
