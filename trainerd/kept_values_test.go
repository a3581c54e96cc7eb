package trainerd_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A session is lost before there is a checkpoint, and the values are the program's own, which
// keeps them: the training continues after the last step that was made, whose point stays,
// whosever writer has it, in a second run of the Supervisor too.
func TestSessionOfKeptValuesIsLost(t *testing.T) {
	for _, events := range []string{"none", "in the logdir", "elsewhere", "without a logdir"} {
		for _, keep := range []bool{false, true} {
			for _, runs := range []int{1, 2} {
				t.Run(fmt.Sprintf("writer %s, kept %v, %d runs", events, keep, runs), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { losesKeptValues(t, events, keep, runs) })
				})
			}
		}
	}
}

// losesKeptValues trains four steps, in one run that loses its session after the second, or in
// two runs.
func losesKeptValues(t *testing.T, events string, keep bool, runs int) {
	var vars trainerd.Variables
	dir := t.TempDir()
	sv := &trainerd.Supervisor{NewSession: vars.Session, Logdir: dir, SaveModelEvery: -1, SaveSummariesEvery: -1, MaxRestarts: 1, KeepSummaryWriter: keep}
	if events != "none" {
		if events != "in the logdir" {
			dir = t.TempDir()
		}
		w, err := tfevents.NewFileWriter(dir, nil)
		sessiontest.MustNoErr(t, err)
		sv.SummaryWriter = w
	}
	if events == "without a logdir" {
		sv.Logdir = ""
	}
	for range runs {
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
				switch {
				case step == 2 && runs == 1:
					return session.ErrAborted
				case step == 4, step == 2:
					return nil
				}
				if err := sv.StepDone(ctx, step); err != nil {
					return err
				}
			}
		})
	}
	sessiontest.MustNoErr(t, sv.Writer().Close())
	for _, purge := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
		var steps []int64
		for p := range tfevents.ReadRun(os.DirFS(dir), onlyRun(t, dir), &tfevents.RunOptions{Purge: purge}).Lookup("loss").Points() {
			steps = append(steps, p.Step)
		}
		if !slices.Equal(steps, []int64{1, 2, 3, 4}) {
			t.Errorf("purge %v: points of the steps %v", purge, steps)
		}
	}
}

func onlyRun(t *testing.T, dir string) tfevents.Run {
	t.Helper()
	runs, err := tfevents.FindRuns(os.DirFS(dir), ".")
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	return runs[0]
}
