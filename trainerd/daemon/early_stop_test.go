package daemon

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile/faultfs"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// earlyJob is a job whose accuracy soon cannot become better.
func earlyJob(t *testing.T, more ...string) *config.Config {
	return clustersConfig(t, append([]string{"train.steps=400", "eval.steps=5", "train.early_stopping=3", "eval.keep_best=1", "eval.metric=accuracy"}, more...)...)
}

// TestEarlyStopping ends a training after three evaluations that are not better;
// run again it is complete.
func TestEarlyStopping(t *testing.T) {
	c := earlyJob(t)
	out, log := runJob(t, t.Context(), c)
	steps := evalSteps(t, c)
	if !strings.Contains(log, "3 evaluations since have not been better") || len(steps) < 4 || steps[len(steps)-1] >= 400 {
		t.Fatalf("evaluations at %v:\n%s%s", steps, log, out)
	}
	last := lastStep(t, c)
	if last != steps[len(steps)-1] {
		t.Errorf("the newest checkpoint is of step %d, the last evaluation of %d", last, steps[len(steps)-1])
	}
	if out, log = runJob(t, t.Context(), c); !strings.Contains(out, "job is complete") {
		t.Errorf("run again:\n%s%s", log, out)
	}
	longer, err := config.Load(c.File(), []config.Override{{Flag: "--set", Assignment: "train.steps=400"}, {Flag: "--set", Assignment: "eval.steps=5"}, {Flag: "--set", Assignment: "train.early_stopping=6"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, log = runJob(t, t.Context(), longer); !strings.Contains(log, "6 evaluations since") {
		t.Errorf("with more patience:\n%s", log)
	}
}

// TestEarlyStoppingUnread has a complete job's files fail to be read at first, so that
// it looks like one with steps left.
func TestEarlyStoppingUnread(t *testing.T) {
	c := earlyJob(t)
	runJob(t, t.Context(), c)
	want := lastStep(t, c)
	var out, log strings.Builder
	disk := faultfs.NewFault(faultfs.Fault{At: 1, Err: syscall.EIO})
	if err := Run(t.Context(), c, RunOptions{Stdout: &out, Stderr: &log, FS: disk}); err != nil {
		t.Fatal(err)
	}
	if disk.Failed() == "" {
		t.Fatal("nothing has failed")
	}
	if got := lastStep(t, c); got != want {
		t.Errorf("it had ended at step %d, and has step %d now:\n%s%s", want, got, &log, &out)
	}
}

// TestEarlyStoppingResumed stops a training on its way: resumed, it ends where it
// would have ended.
func TestEarlyStoppingResumed(t *testing.T) {
	whole := earlyJob(t)
	runJob(t, t.Context(), whole)
	c := earlyJob(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := writerFunc(func(line []byte) (int, error) {
		if strings.Contains(string(line), "evaluated step=10 ") {
			cancel()
		}
		return len(line), nil
	})
	if err := Run(ctx, c, RunOptions{Stdout: stop, Stderr: stop}); err != nil {
		t.Fatal(err)
	}
	if at := lastStep(t, c); at >= lastStep(t, whole) {
		t.Fatalf("it has not stopped: step %d", at)
	}
	runJob(t, t.Context(), c)
	if got, want := lastStep(t, c), lastStep(t, whole); got != want {
		t.Errorf("resumed it ended at step %d; want %d", got, want)
	}
	if got := readSaved(filepath.Join(c.Logdir, "best", "model.ckpt-5"), nil); got == nil {
		t.Error("the best model is not that of the first evaluation")
	}
}

// TestEarlyStoppingRemoved removes the file of a logdir that was deleted and made again,
// before a save or during one: the checkpoint has it.
func TestEarlyStoppingRemoved(t *testing.T) {
	c := earlyJob(t)
	j, err := newJob(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	e := newEarlyStop(j)
	e.add(5, &evaluation{names: []string{"accuracy"}, values: []float64{0.5}})
	mustNoErr(t, os.MkdirAll(c.Logdir, 0o777), e.write())
	during := map[string]func() error{
		"before": func() error { return e.listener().BeforeSave(t.Context(), nil) },
		"after":  func() error { return e.listener().AfterSave(t.Context(), trainerd.SavedCheckpoint{}) },
	}
	for when, save := range during {
		mustNoErr(t, os.Remove(e.name), save())
		again := newEarlyStop(j)
		if err := again.begin(5); err != nil || len(again.record.Evaluations) != 1 {
			t.Errorf("%s a save the file has %v, %v; want the evaluation of step 5", when, again.record.Evaluations, err)
		}
	}
}

// TestEarlyStoppingWithoutNumbers has evaluations without a number, which are never better, and
// one that is worse than any number.
func TestEarlyStoppingWithoutNumbers(t *testing.T) {
	c := earlyJob(t)
	j, err := newJob(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	e := newEarlyStop(j)
	mustNoErr(t, os.MkdirAll(c.Logdir, 0o777))
	for i, step := range []struct {
		value float64
		after int
	}{{math.NaN(), 0}, {math.NaN(), 1}, {math.Inf(-1), 0}, {0.5, 0}, {math.NaN(), 1}, {0.25, 2}} {
		e.add(int64(i), &evaluation{names: []string{"accuracy"}, values: []float64{step.value}})
		mustNoErr(t, e.write())
		again := newEarlyStop(j)
		mustNoErr(t, again.begin(int64(i)))
		if _, after := again.best(); after != step.after {
			t.Errorf("evaluation %d of %v: %d have not been better, want %d", i, step.value, after, step.after)
		}
	}
}
