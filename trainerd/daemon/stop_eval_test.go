package daemon

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/tfevents"
)

// TestStopInAnEvaluation stops a job while it evaluates: the evaluation is completed and
// written before the end, and the next run continues as if nothing had happened.
func TestStopInAnEvaluation(t *testing.T) {
	more := []string{"train.steps=40", "eval.steps=5", "eval.keep_best=1", "eval.metric=accuracy"}
	whole, stopped := clustersConfig(t, more...), clustersConfig(t, more...)
	runJob(t, t.Context(), whole)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := Run(ctx, stopped, RunOptions{Stdout: new(bytes.Buffer), Stderr: writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("msg=evaluated step=10 ")) {
			cancel()
		}
		return len(line), nil
	})})
	if err != nil || ctx.Err() == nil {
		t.Fatalf("%v; the context is %v", err, ctx.Err())
	}
	if got, step := evaluations(t, stopped.Logdir), lastStep(t, stopped); step != 10 || !slices.Equal(got, []int64{5, 10}) {
		t.Errorf("stopped at step %d with evaluations at %v; want 10, and 5 and 10", step, got)
	}
	runJob(t, t.Context(), stopped)
	if got, want := evaluations(t, stopped.Logdir), evaluations(t, whole.Logdir); !slices.Equal(got, want) || len(want) != 8 {
		t.Errorf("evaluations at %v, want %v", got, want)
	}
	const last = "model.ckpt-40.data-00000-of-00001"
	var data [2][]byte
	for i, dir := range []string{whole.Logdir, stopped.Logdir} {
		if data[i], err = os.ReadFile(filepath.Join(dir, last)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(data[0], data[1]) {
		t.Error("the last checkpoint differs from that of an undisturbed run")
	}
}

// evaluations returns the steps of the evaluations as TensorBoard is to show them.
func evaluations(t *testing.T, logdir string) (steps []int64) {
	t.Helper()
	root := os.DirFS(filepath.Join(logdir, evalDir))
	runs, err := tfevents.FindRuns(root, ".")
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, %v", runs, err)
	}
	for _, s := range tfevents.ReadRun(root, runs[0], nil).Series {
		if s.Tag == "accuracy" {
			for p := range s.Points() {
				steps = append(steps, p.Step)
			}
		}
	}
	return steps
}
