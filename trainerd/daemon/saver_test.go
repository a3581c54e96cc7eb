package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
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
		{"steps to keep besides the newest", []string{"supervisor.max_to_keep=2", "supervisor.keep_steps=[10]"}, []string{
			"model.ckpt-10.data-00000-of-00001", "model.ckpt-10.index", "model.ckpt-10.meta",
			"model.ckpt-30.data-00000-of-00001", "model.ckpt-30.index", "model.ckpt-30.meta",
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

// TestCompleteInV1 runs a job again that is complete, and has saved in the older
// format.
func TestCompleteInV1(t *testing.T) {
	for _, shards := range []string{"1", "2"} {
		c := clustersConfig(t, `supervisor.write_version="V1"`, "supervisor.shards="+shards)
		runJob(t, t.Context(), c)
		before, err := os.ReadDir(c.Logdir)
		if err != nil {
			t.Fatal(err)
		}
		if stdout, _ := runJob(t, t.Context(), c); !strings.HasPrefix(stdout, "job is complete: step 40 of 40") {
			t.Errorf("%s shards: stdout is\n%s", shards, stdout)
		}
		if after, err := os.ReadDir(c.Logdir); err != nil || len(after) != len(before) {
			t.Errorf("%s shards: files %v, %v; want %v", shards, after, err, before)
		}
	}
}

// TestTypesOfV1 has a variable of a type that the older format does not know.
func TestTypesOfV1(t *testing.T) {
	b := graph.NewBuilder()
	one := &tfpb.TensorProto{Dtype: tfpb.DataType_DT_UINT64, TensorShape: &tfpb.TensorShapeProto{}, Uint64Val: []uint64{1}}
	w := b.Variable(graph.VariableSpec{Name: "w", DType: tfpb.DataType_DT_UINT64, Initial: graph.Value(one)})
	b.Add(graph.NodeSpec{Op: "ReadVariableOp", Name: "read", Inputs: []graph.Output{w.Handle()},
		Attrs: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_UINT64)}})
	file := modelFile(t, b)
	for version, want := range map[string]string{"V1": "saver: variable w: V1 checkpoints do not hold uint64", "V2": ""} {
		c := graphConfig(t, file, `train_op = "read"`, "[train]", "steps = 2", "[supervisor]", fmt.Sprintf("write_version = %q", version))
		errs := map[string]error{
			"check": Check(t.Context(), filepath.Join(filepath.Dir(c.Logdir), "job.toml"), nil, io.Discard),
			"run":   Run(t.Context(), c, RunOptions{Stdout: io.Discard, Stderr: io.Discard}),
		}
		for what, err := range errs {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s of %s: %v; want %q", what, version, err, want)
			}
		}
	}
}

// TestSaveBudgetSettings checks that the bounds reach the Supervisor.
func TestSaveBudgetSettings(t *testing.T) {
	c := clustersConfig(t, "supervisor.max_save_share=0.05", "supervisor.max_risk_secs=90")
	j := &job{config: c, program: new(program.Program), tester: new(tester)}
	j.attach(slog.New(slog.DiscardHandler), nil, nil)
	want := trainerd.SaveBudget{MaxShare: 0.05, MaxRisk: 90e9}
	if got := j.supervisor().SaveBudget; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
