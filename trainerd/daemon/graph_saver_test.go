package daemon

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/graph/literal"
)

// TestKeptByGraphSaver trains a graph whose saver says which checkpoints are kept, as
// tf.compat.v1.train.Saver(max_to_keep=...) does, under configs that say it or do not.
func TestKeptByGraphSaver(t *testing.T) {
	tests := []struct {
		name  string
		saver func(s *tfpb.SaverDef)
		lines []string
		kept  string // of the checkpoints at 0 to 8
		check string
	}{
		{"saver of three", func(s *tfpb.SaverDef) { s.MaxToKeep = 3 }, nil, "6 7 8", "the newest 3 are kept"},
		{"saver of all", func(s *tfpb.SaverDef) { s.MaxToKeep = 0 }, nil, "0 1 2 3 4 5 6 7 8", "all are kept"},
		{"saver of periods", func(s *tfpb.SaverDef) { s.MaxToKeep, s.KeepCheckpointEveryNHours = 2, 1e-9 }, nil, "1 2 3 4 5 6 7 8", "the newest 2 are kept"},
		{"saver of periods and steps", func(s *tfpb.SaverDef) { s.MaxToKeep, s.KeepCheckpointEveryNHours = 2, 1e-9 },
			[]string{"keep_steps = [1]"}, "0 1 2 3 4 5 6 7 8", "the newest 2 are kept"},
		{"config of the default", func(s *tfpb.SaverDef) { s.MaxToKeep = 3 }, []string{"max_to_keep = 5"}, "4 5 6 7 8", "the newest 5 are kept"},
		{"config of no periods", func(s *tfpb.SaverDef) { s.MaxToKeep, s.KeepCheckpointEveryNHours = 2, 1e-9 },
			[]string{"keep_checkpoint_every_n_hours = 0"}, "7 8", "the newest 2 are kept"},
		{"config of another number", func(s *tfpb.SaverDef) { s.MaxToKeep = 0 }, []string{"max_to_keep = 1"}, "8", "the newest 1 are kept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lines := []string{`train_op = "train"`, "[train]", "steps = 8", "[supervisor]", "save_model_steps = 1"}
			c := graphConfig(t, savedGraph(t, tt.saver), append(lines, tt.lines...)...)
			var report strings.Builder
			if err := Check(t.Context(), c.File(), nil, &report); err != nil || !strings.Contains(report.String(), tt.check) {
				t.Errorf("check: %v\n%s\nwant %q", err, &report, tt.check)
			}
			runJob(t, t.Context(), c)
			if diff := cmp.Diff(tt.kept, strings.Join(stepsKept(t, c.Logdir), " ")); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			again, err := config.Load(filepath.Join(c.Logdir, "config.toml"), nil)
			if err != nil {
				t.Fatal(err)
			}
			report.Reset()
			if err := Check(t.Context(), again.File(), nil, &report); err != nil || !strings.Contains(report.String(), tt.check) {
				t.Errorf("check of the logdir's config: %v\n%s\nwant %q", err, &report, tt.check)
			}
			if err := Run(t.Context(), again, RunOptions{Stdout: io.Discard, Stderr: io.Discard}); err != nil {
				t.Error(err)
			}
		})
	}
}

// savedGraph exports a graph that counts its steps, with its saver as edit leaves it.
func savedGraph(t *testing.T, edit func(s *tfpb.SaverDef)) string {
	t.Helper()
	b := graph.NewBuilder()
	step := b.GlobalStep()
	b.Add(graph.NodeSpec{Op: "AssignAddVariableOp", Name: "train", Inputs: []graph.Output{step.Handle(), b.Const("one", literal.Int64(1))},
		Attrs: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_INT64)}})
	b.AddSaver()
	b.AddInit()
	meta, err := b.MetaGraph()
	if err != nil {
		t.Fatal(err)
	}
	delete(meta.CollectionDef, graph.SaversKey) // as export_meta_graph of a Saver leaves it
	edit(meta.SaverDef)
	file := filepath.Join(t.TempDir(), "model.meta")
	if err := os.WriteFile(file, tfproto.Marshal(meta), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// stepsKept lists the steps of the checkpoints in a logdir.
func stepsKept(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "model.ckpt-*.index"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, p := range paths {
		steps = append(steps, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(p), "model.ckpt-"), ".index"))
	}
	return steps
}
