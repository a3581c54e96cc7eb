package hook

import (
	"context"
	"fmt"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// RunHook is a [Hook] that takes part in each call of the training's session:
// it adds to the call's arguments, and sees their results. Calls with a
// context other than the training's, such as a service's, do not count.
type RunHook interface {
	Hook
	// BeforeRun is called before each call. Its result is added to the call;
	// nil adds nothing.
	BeforeRun(ctx context.Context, c *RunContext) (*RunArgs, error)
	// AfterRun is called after each call that succeeded.
	AfterRun(ctx context.Context, c *RunContext, v *RunValues) error
}

// RunArgs are the arguments of a session's call.
type RunArgs struct {
	Feeds   map[string]*ckptfmt.Tensor
	Fetches []string
	Targets []string
	// Options are merged: the highest trace level, the longest timeout, and
	// anything else that any of them requests.
	Options *tfpb.RunOptions
}

// RunContext is one call of the training's session.
type RunContext struct {
	// Session is the session without hooks.
	Session session.Session
	// Args are the training's own arguments, without what hooks add. They must
	// not be changed.
	Args RunArgs

	run   Run
	known bool // step is
	step  int64
}

// RequestStop asks for the end of the training, cleanly.
func (c *RunContext) RequestStop() { c.run.RequestStop() }

// StepAfter returns the global step after the call. It is read once for all hooks.
func (c *RunContext) StepAfter(ctx context.Context) (int64, error) {
	if c.known {
		return c.step, nil
	}
	step, err := c.run.GlobalStep(ctx)
	c.step, c.known = step, err == nil
	return step, err
}

// RunValues are the results of a call for a hook.
type RunValues struct {
	Results  []*ckptfmt.Tensor // of the hook's fetches, in their order
	Options  *tfpb.RunOptions  // as merged; nil if there were none
	Metadata *tfpb.RunMetadata // what the session recorded, nil for nothing
}

// NewRunContext returns the context of a call. Supervisor makes them.
func NewRunContext(r Run, s session.Session, args RunArgs) *RunContext {
	return &RunContext{Session: s, Args: args, run: r}
}

// Call runs the call with its hooks, and returns the training's own fetches.
func (c *RunContext) Call(ctx context.Context, hooks []RunHook) ([]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	if len(hooks) == 0 {
		return c.Args.run(ctx, c.Session)
	}
	m := newMerger(c.Args)
	first := make([]int, len(hooks)+1) // of each hook's fetches
	for i, h := range hooks {
		first[i] = len(m.Fetches)
		more, err := h.BeforeRun(ctx, c)
		if err == nil && more != nil {
			err = m.add(fmt.Sprintf("%T", h), more)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	first[len(hooks)] = len(m.Fetches)
	out, meta, err := m.run(ctx, c.Session)
	if err != nil {
		return nil, meta, err
	}
	for i, h := range hooks {
		v := &RunValues{Results: out[first[i]:first[i+1]:first[i+1]], Options: m.Options, Metadata: meta}
		if err := h.AfterRun(ctx, c, v); err != nil {
			return nil, meta, err
		}
	}
	n := len(c.Args.Fetches)
	return out[:n:n], meta, nil
}

// run makes the call, without hooks.
func (a *RunArgs) run(ctx context.Context, s session.Session) ([]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	if a.Options != nil {
		return session.RunWithOptions(ctx, s, a.Options, a.Feeds, a.Fetches, a.Targets)
	}
	out, err := s.Run(ctx, a.Feeds, a.Fetches, a.Targets)
	return out, nil, err
}
