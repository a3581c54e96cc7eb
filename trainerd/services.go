package trainerd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/session"
)

// StartStandardServices starts those of the summary service, the step counter
// and the checkpoint service that are switched on, and the queue runners.
// PrepareOrWaitForSession does so unless NoStandardServices is set.
func (sv *Supervisor) StartStandardServices(ctx context.Context) error {
	r := sv.current()
	switch {
	case r == nil:
		return errNoRun
	case sv.NonChief:
		return errors.New("only the chief's supervisor can start the standard services")
	case r.ended.Load():
		return errRunEnded
	case !r.services.CompareAndSwap(false, true):
		return nil
	}
	if r.writer != nil && r.plan.globalStep != "" {
		if err := sv.writeStart(ctx, r); err != nil {
			return err
		}
	}
	if err := sv.startServices(ctx, r); err != nil {
		return err
	}
	return sv.StartQueueRunners()
}

func (sv *Supervisor) startServices(ctx context.Context, r *run) error {
	r.services.Store(true)
	if sv.Logdir == "" {
		sv.log().Warn("standard services need a logdir; none is started")
		return nil
	}
	every := interval(sv.SaveSummariesEvery, DefaultSaveSummariesEvery)
	if r.writer != nil && every > 0 {
		sv.startSummaries(r, every)
	}
	if every := sv.saveModelEvery(); r.checkpoints != nil && (every > 0 || sv.SaveBudget.MaxRisk > 0) {
		return sv.startCheckpoints(ctx, r, every)
	}
	return nil
}

// startCheckpoints starts the checkpoint service. A model that was initialised,
// or restored from elsewhere, is saved as it is before the first step; one that
// was restored from the logdir has its checkpoint.
func (sv *Supervisor) startCheckpoints(ctx context.Context, r *run, every time.Duration) error {
	if r.checkpoints.current.Prefix == "" {
		if err := r.checkpoints.saveInBackground(ctx, &sv.coord); err != nil {
			return err
		}
	}
	r.checkpoints.setInterval(every)
	sv.coord.Go("checkpoint service", r.checkpoints.serve)
	return nil
}

func (sv *Supervisor) startSummaries(r *run, every time.Duration) {
	if !r.plan.summary.IsNone() {
		sv.startSummaryOp(r, every)
	}
	if r.plan.globalStep != "" {
		sv.Loop("step counter", every, (&stepCounter{log: sv.log(), run: r}).tick)
	}
}

func (sv *Supervisor) startSummaryOp(r *run, every time.Duration) {
	if placeholder, yes := graph.NodesOf(r.plan.meta.GetGraphDef()).Placeholder(r.plan.summary.nodes); yes {
		sv.log().Info("no summary service: the summary op needs a feed; use SummaryComputed", "placeholder", placeholder)
		return
	}
	s := &summaryService{run: r, last: r.startStep - 1}
	sv.Loop("summary service", every, s.tick)
}

// summaryService writes the results of the summary op.
type summaryService struct {
	run    *run
	last   int64              // step of the last summary
	values *checkpoint.Values // of the variables by then
}

func (s *summaryService) tick(ctx context.Context) error {
	values := s.run.values(ctx)
	out, step, err := s.compute(ctx)
	if err != nil {
		return fmt.Errorf("summary op %v: %w", s.run.plan.summary, err)
	}
	// If nothing has happened, a second point at the step is useless. After a restart the previous
	// run has written the point of the restored step. A step that was set back counts as another
	// one.
	if s.run.plan.globalStep != "" && step == s.last && s.values.Compare(ctx) != checkpoint.Changed {
		return nil
	}
	s.last, s.values = step, values
	summary, err := parseSummaries(out)
	if err != nil || len(summary.GetValue()) == 0 {
		return err
	}
	return s.run.addSummary(ctx, summary, step)
}

// compute runs the summary op. With nodes it also fetches the global step in the same call of the
// session, if possible.
func (s *summaryService) compute(ctx context.Context) (out []*ckptfmt.Tensor, step int64, err error) {
	p := s.run.plan
	if p.summary.fn == nil && p.stepTensor != "" {
		return s.computeWithStep(ctx)
	}
	if p.summary.fn != nil {
		out, err = p.summary.fn(ctx, s.run.sess)
	} else {
		out, err = s.run.sess.Run(ctx, nil, p.summary.nodes, nil)
	}
	if err != nil {
		return nil, session.NoStep, err
	}
	step, err = session.ReadStep(ctx, s.run.sess, p.globalStep)
	return out, step, err
}

func (s *summaryService) computeWithStep(ctx context.Context) ([]*ckptfmt.Tensor, int64, error) {
	p := s.run.plan
	fetches := append(slices.Clone(p.summary.nodes), p.stepTensor)
	out, err := s.run.sess.Run(ctx, nil, fetches, nil)
	if err != nil {
		return nil, session.NoStep, err
	}
	last := len(out) - 1
	step, err := session.ScalarInt(out[last])
	return out[:last], step, err
}

// Loop calls f on a timer until the run ends, in its own goroutine; see
// [coord.Loop]. An error of f ends the run.
func (sv *Supervisor) Loop(name string, interval time.Duration, f func(ctx context.Context) error) {
	sv.coord.Go(name, (&coord.Loop{Interval: interval, Func: f}).Serve)
}
