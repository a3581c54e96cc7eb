package trainerd

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// manifestMetrics returns what the manifest of a step says of its metrics.
func manifestMetrics(t *testing.T, dir string, step int64) map[string]string {
	t.Helper()
	m, err := manifest.Read(filepath.Join(dir, fmt.Sprintf("model.ckpt-%d", step)))
	sessiontest.MustNoErr(t, err)
	got := make(map[string]string)
	for name, v := range m.Metrics {
		got[name] = fmt.Sprintf("%v of step %d by %s", float64(v), m.Measured[name].Step, m.Measured[name].Source)
	}
	return got
}

// A checkpoint has the values of its own step, an evaluation's before those of a
// batch, and nothing older but what the program has said, marked as such.
func TestMetricsAreOfTheirStep(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 1)
	sv.Saver = &checkpoint.Saver{MaxToKeep: -1}
	summary := func(v float32) *tfpb.Summary {
		return &tfpb.Summary{Value: []*tfpb.Summary_Value{summary.Scalar("loss", float64(v))}}
	}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		for n := int64(1); n <= 5; n++ {
			m.Step()
			if n == 1 {
				sv.ReportMetric("lr", 0.5)
			}
			if n == 3 {
				sv.ReportEvaluation(n, map[string]float64{"loss": 3})
			}
			if n == 2 || n == 3 {
				sessiontest.MustNoErr(t, sv.SummaryComputed(ctx, summary(float32(n)+10), n))
			}
			if n == 4 {
				sv.ReportEvaluation(n, map[string]float64{"loss": 2})
			}
			if err := sv.StepDone(ctx, n); err != nil {
				return err
			}
			if _, err := sv.Save(ctx); err != nil { // waits for the one in the background
				return err
			}
		}
		return nil
	}))
	const lr = "0.5 of step 1 by program"
	for i, want := range []map[string]string{
		{"lr": lr}, {"lr": lr, "loss": "12 of step 2 by train"}, {"lr": lr, "loss": "3 of step 3 by eval"}, {"lr": lr, "loss": "2 of step 4 by eval"}, {"lr": lr},
	} {
		if diff := cmp.Diff(want, manifestMetrics(t, dir, int64(i+1))); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i+1, diff)
		}
	}
	best := &checkpoint.Saver{}
	var prefixes []string
	for n := 1; n <= 5; n++ {
		prefixes = append(prefixes, filepath.Join(dir, fmt.Sprintf("model.ckpt-%d", n)))
	}
	best.RecoverLastCheckpoints(prefixes)
	var stored []retention.Checkpoint
	for _, k := range best.Kept() {
		stored = append(stored, k.Checkpoint)
	}
	got := retention.Best{Metric: "loss", N: 3}.Keep(stored)
	if diff := cmp.Diff([]string{"", "", "best loss, place 2: 3", "best loss, place 1: 2", ""}, got); diff != "" {
		t.Errorf("the best of them (-want +got):\n%s", diff)
	}
	if len(stored[1].Metrics) != 1 || len(stored[4].Metrics) != 0 || stored[0].Metrics["lr"] != 0.5 {
		t.Errorf("values of other steps count: %+v", stored)
	}
}
