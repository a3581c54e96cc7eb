package exec

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/session"
)

// traceDevice is the name under which TensorFlow's timelines show the one
// device that there is.
const traceDevice = "/job:localhost/replica:0/task:0/device:CPU:0"

// trace records the steps of one run.
type trace struct{ nodes []*tfpb.NodeExecStats }

var _ session.OptionsRunner = (*Session)(nil)

// RunWithOptions implements [session.OptionsRunner]: it is Run with a timeout,
// and with a trace level it records when each op ran.
func (s *Session) RunWithOptions(ctx context.Context, o *tfpb.RunOptions, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
	[]*ckptfmt.Tensor, *tfpb.RunMetadata, error) {
	if ms := o.GetTimeoutInMs(); ms > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	if o.GetTraceLevel() == tfpb.RunOptions_NO_TRACE {
		out, err := s.Run(ctx, feeds, fetches, targets)
		return out, nil, err
	}
	t := &trace{}
	p, out, err := s.runTraced(ctx, t, feeds, fetches, targets)
	if p == nil {
		return nil, nil, err
	}
	return out, t.metadata(), err
}

// runTraced compiles a plan, or finds it, and runs it. The plan is nil if that
// cannot be done. A trace that is not nil records the steps.
func (s *Session) runTraced(ctx context.Context, t *trace, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) (
	*Plan, []*ckptfmt.Tensor, error) {
	names := make([]string, 0, len(feeds))
	for name := range feeds {
		names = append(names, name)
	}
	slices.Sort(names)
	p, err := s.plan(ctx, names, fetches, targets)
	if err != nil {
		return nil, nil, err
	}
	out, err := s.doTraced(ctx, p, t, func(i int) *ckptfmt.Tensor { return feeds[p.feeds[i].name] })
	return p, out, err
}

// do runs a plan on fed tensors and copies the fetched values out.
func (s *Session) do(ctx context.Context, p *Plan, fed func(i int) *ckptfmt.Tensor) ([]*ckptfmt.Tensor, error) {
	return s.doTraced(ctx, p, nil, fed)
}

func (t *trace) metadata() *tfpb.RunMetadata {
	return &tfpb.RunMetadata{StepStats: &tfpb.StepStats{DevStats: []*tfpb.DeviceStepStats{{Device: traceDevice, NodeStats: t.nodes}}}}
}

// tracedSteps is steps of a frame whose run is traced. What functions and loops
// run is part of the step that calls them.
func (r *run) tracedSteps(f *frame) error {
	t := r.trace
	r.trace = nil
	defer func() { r.trace = t }()
	for i := range f.plan.steps {
		st := &f.plan.steps[i]
		if r.ctx.Err() != nil {
			return r.cancelled(st)
		}
		began := time.Now()
		err := r.step(f, st)
		took := time.Since(began)
		t.nodes = append(t.nodes, &tfpb.NodeExecStats{
			NodeName: st.name, TimelineLabel: fmt.Sprintf("%s = %s()", st.name, st.op),
			AllStartMicros: began.UnixMicro(), AllStartNanos: began.UnixNano(),
			OpEndRelMicros: took.Microseconds(), OpEndRelNanos: took.Nanoseconds(),
			AllEndRelMicros: max(took.Microseconds(), 1), AllEndRelNanos: took.Nanoseconds(),
		})
		if err != nil {
			return err
		}
	}
	return nil
}
