package trainerd_test

import (
	"context"
	"slices"
	"testing"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
)

// curve is a program's own hook: it writes a point at each second step and ends the
// training at the fourth.
type curve struct {
	hook.Funcs
	run  hook.Run
	from int64
}

func (c *curve) Attach(r hook.Run) { c.run, c.from = r, r.StepsDone() }

func (c *curve) AfterStep(ctx context.Context, _ session.Session, step int64) error {
	read, err := c.run.GlobalStep(ctx)
	if err != nil || read != step {
		return err
	}
	if step == c.from+4 {
		c.run.RequestStop()
	}
	if step%2 > 0 {
		return nil
	}
	return c.run.SummaryComputed(ctx, &tfpb.Summary{Value: []*tfpb.Summary_Value{summary.Scalar("own", float64(step))}}, step)
}

// TestOwnHookSeesItsRun has a program's hook read the step, write a curve and stop
// the run, twice: it counts from where each run begins.
func TestOwnHookSeesItsRun(t *testing.T) {
	logdir := t.TempDir()
	for run := range int64(2) {
		var vars trainerd.Variables
		sv := &trainerd.Supervisor{Logdir: logdir, NewSession: vars.Session, Hooks: []trainerd.Hook{new(curve)}}
		err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			for !sv.ShouldStop() {
				step, err := vars.Step(func() error { return nil })
				if err == nil {
					err = sv.StepDone(ctx, step)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || vars.GlobalStep() != 4*(run+1) {
			t.Fatalf("run %d: %v, at step %d", run, err, vars.GlobalStep())
		}
	}
	got := stepsOf(points(t, logdir, "own"))
	if want := []int64{2, 4, 6, 8}; !slices.Equal(got, want) {
		t.Errorf("points at %v, want %v", got, want)
	}
}
