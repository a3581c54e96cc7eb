package daemon

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// evaluatedLoss returns the losses of the evaluations in a logdir by step.
func evaluatedLoss(t *testing.T, c *config.Config) map[int64]float64 {
	t.Helper()
	values := make(map[int64]float64)
	for _, e := range evalEvents(t, c) {
		for _, v := range e.GetSummary().GetValue() {
			if x, ok := decode.Scalar(v); ok && v.GetTag() == "loss" {
				values[e.GetStep()] = x
			}
		}
	}
	return values
}

// TestManifestsHaveTheirEvaluation compares the manifests of a run with its
// evaluations: a checkpoint has that of its own step or none.
func TestManifestsHaveTheirEvaluation(t *testing.T) {
	c := clustersConfig(t, "eval.steps=10", "eval.keep_best=2", "eval.metric=loss", "supervisor.save_model_steps=5", "supervisor.save_summaries_steps=7", "supervisor.max_to_keep=0")
	runJob(t, t.Context(), c)
	evaluated := evaluatedLoss(t, c)
	want, got := make(map[int64]string), make(map[int64]string)
	for step := int64(5); step <= 40; step += 5 {
		if v, ok := evaluated[step]; ok {
			want[step] = fmt.Sprintf("%.6g of step %d by eval", v, step)
		} else if step == 35 {
			want[step] = "by train" // its summaries
		}
		m, err := manifest.Read(filepath.Join(c.Logdir, fmt.Sprintf("model.ckpt-%d", step)))
		if err != nil {
			t.Fatal(err)
		}
		if v, source, ok := m.Value("loss"); ok && source == manifest.SourceEval {
			got[step] = fmt.Sprintf("%.6g of step %d by eval", float64(v), m.Measured["loss"].Step)
		} else if ok {
			got[step] = "by " + source
		}
		if len(m.Metrics) > 0 && got[step] == "" {
			t.Errorf("step %d has %v", step, m.Metrics)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(evaluated) != 4 {
		t.Errorf("%d evaluations (-want +got):\n%s", len(evaluated), diff)
	}
	list, err := ckptdir.List(filepath.Join(c.Logdir, logdir.BestDir))
	if err != nil || len(list) != 2 {
		t.Fatalf("the best are %v, %v", list, err)
	}
	for _, b := range list {
		m, err := manifest.Read(b.Prefix)
		if err != nil {
			t.Fatal(err)
		}
		if v, source, ok := m.Value("loss"); !ok || source != manifest.SourceEval || m.Step != b.Step || float32(v) != float32(evaluated[b.Step]) || len(m.Metrics) != 2 {
			t.Errorf("best/%s has %v by %q, want %v", filepath.Base(b.Prefix), m.Metrics, source, evaluated[b.Step])
		}
	}
}
