package trainerd

import (
	"context"
	"log/slog"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// hookRun is a run as its hooks see it.
type hookRun struct {
	sv *Supervisor
	r  *run
}

func (h hookRun) Session() session.Session { return h.r.sess }
func (h hookRun) Context() context.Context { return h.sv.coord.Context() }
func (h hookRun) RequestStop()             { h.sv.endFor(session.ErrCompleted) }
func (h hookRun) StepsDone() int64         { return h.r.stepsDone.Load() }
func (h hookRun) StepName() string         { return h.r.plan.globalStep }
func (h hookRun) Events() *eventlog.Log    { return h.r.events }
func (h hookRun) Logdir() string           { return h.sv.Logdir }
func (h hookRun) FS() ckptfmt.FS           { return h.r.lockedFS() }
func (h hookRun) Logger() *slog.Logger     { return h.sv.log() }

func (h hookRun) GlobalStep(ctx context.Context) (int64, error) {
	if h.r.steps == nil || h.r.steps.step == "" {
		return session.NoStep, hook.ErrNoStep
	}
	return h.r.steps.readStep(ctx, h.r.sess)
}

func (h hookRun) SummaryOps() []string {
	return summaries(graph.Collections{Meta: h.r.plan.meta}).nodes
}

func (h hookRun) SummaryComputed(ctx context.Context, summary any, step int64) error {
	s, err := summaryOf(summary)
	if err != nil || h.r.events == nil || len(s.GetValue()) == 0 {
		return err
	}
	return h.r.addSummary(ctx, s, step)
}
