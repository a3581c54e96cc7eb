package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd"
)

// TestCheckpointSettings trains with each setting of how checkpoints are
// written and kept, and looks at the files.
func TestCheckpointSettings(t *testing.T) {
	tests := []struct {
		name      string
		overrides []string
		files     []string // of checkpoints, without their manifests
	}{
		{"defaults", []string{"supervisor.max_to_keep=1"},
			[]string{"model.ckpt-40.data-00000-of-00001", "model.ckpt-40.index", "model.ckpt-40.meta"}},
		{"shards", []string{"supervisor.max_to_keep=1", "supervisor.shards=2"},
			[]string{"model.ckpt-40.data-00000-of-00002", "model.ckpt-40.data-00001-of-00002", "model.ckpt-40.index", "model.ckpt-40.meta"}},
		{"the first format", []string{"supervisor.max_to_keep=1", `supervisor.write_version="V1"`},
			[]string{"model.ckpt-40", "model.ckpt-40.meta"}},
		{"steps to keep", []string{"supervisor.max_to_keep=1", "supervisor.keep_steps=[20]"}, []string{
			"model.ckpt-20.data-00000-of-00001", "model.ckpt-20.index", "model.ckpt-20.meta",
			"model.ckpt-40.data-00000-of-00001", "model.ckpt-40.index", "model.ckpt-40.meta"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clustersConfig(t, tt.overrides...)
			runJob(t, t.Context(), c)
			paths, err := filepath.Glob(filepath.Join(c.Logdir, "model.ckpt-*"))
			if err != nil {
				t.Fatal(err)
			}
			var files []string
			for _, p := range paths {
				if !strings.HasSuffix(p, ".json") {
					files = append(files, filepath.Base(p))
				}
			}
			if diff := cmp.Diff(tt.files, files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSaveBudgetSettings checks that the bounds reach the Supervisor.
func TestSaveBudgetSettings(t *testing.T) {
	c := clustersConfig(t, "supervisor.max_save_share=0.05", "supervisor.max_risk_secs=90")
	j := &job{config: c, program: new(program)}
	want := trainerd.SaveBudget{MaxShare: 0.05, MaxRisk: 90e9}
	if got := j.supervisor().SaveBudget; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
