package trainerd_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A session is lost before there is a checkpoint, and the values are the program's own, which
// keeps them: the training continues after the last step that was made, whose point stays.
func TestSessionOfKeptValuesIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var vars trainerd.Variables
		dir := t.TempDir()
		sv := &trainerd.Supervisor{NewSession: vars.Session, Logdir: dir, SaveModelEvery: -1, SaveSummariesEvery: -1, MaxRestarts: 1}
		run(t, sv, func(ctx context.Context, _ session.Session) error {
			for {
				step, err := vars.Step(func() error { return nil })
				if err != nil {
					return err
				}
				point := &tfpb.Summary{Value: []*tfpb.Summary_Value{summaryv1.Scalar("loss", float64(step))}}
				if err := sv.SummaryComputed(ctx, point, step); err != nil {
					return err
				}
				switch step {
				case 2:
					return session.ErrAborted
				case 4:
					return nil
				}
				if err := sv.StepDone(ctx, step); err != nil {
					return err
				}
			}
		})
		for _, purge := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
			var steps []int64
			for p := range tfevents.ReadRun(os.DirFS(dir), onlyRun(t, dir), &tfevents.RunOptions{Purge: purge}).Lookup("loss").Points() {
				steps = append(steps, p.Step)
			}
			if !slices.Equal(steps, []int64{1, 2, 3, 4}) {
				t.Errorf("purge %v: points of the steps %v", purge, steps)
			}
		}
	})
}

func onlyRun(t *testing.T, dir string) tfevents.Run {
	t.Helper()
	runs, err := tfevents.FindRuns(os.DirFS(dir), ".")
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	return runs[0]
}
