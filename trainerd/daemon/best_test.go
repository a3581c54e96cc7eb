package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt/layout"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// offers gives bestCheckpoints one value after the other, at the steps 1, 2, ...
func offers(t *testing.T, c *config.Config, first int64, values ...float64) {
	t.Helper()
	offer := newOffer(t, c, first)
	for i, v := range values {
		if err := offer(first+int64(i), v); err != nil {
			t.Fatal(err)
		}
	}
}

// newOffer returns what gives bestCheckpoints the value of a step.
func newOffer(t *testing.T, c *config.Config, first int64) func(step int64, v float64) error {
	t.Helper()
	if err := os.MkdirAll(c.Logdir, 0o777); err != nil {
		t.Fatal(err)
	}
	j, err := newJob(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.close() })
	s, err := j.probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.sess.Close() })
	b := newBestCheckpoints(j)
	if err := b.begin(first); err != nil {
		t.Fatal(err)
	}
	return func(step int64, v float64) error {
		return b.offer(t.Context(), s.sess, step, &evaluation{names: []string{"accuracy", "loss"}, values: []float64{v, v}})
	}
}

// newBestCheckpointsOf returns those of a job.
func newBestCheckpointsOf(t *testing.T, c *config.Config) *bestCheckpoints {
	t.Helper()
	j, err := newJob(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.close() })
	return newBestCheckpoints(j)
}

// keptSteps returns the steps in the record, the best first, and makes sure that
// the folder has these checkpoints and no others.
func keptSteps(t *testing.T, c *config.Config) []int64 {
	t.Helper()
	dir := filepath.Join(c.Logdir, logdir.BestDir)
	text, err := os.ReadFile(filepath.Join(dir, logdir.BestFile))
	if err != nil {
		t.Fatal(err)
	}
	var r bestRecord
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	var steps []int64
	var want, got []string
	for _, k := range r.Checkpoints {
		steps, want = append(steps, k.Step), append(want, k.Name+".index")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.index"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got = append(got, filepath.Base(f))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checkpoints (-record +folder):\n%s", diff)
	}
	return steps
}

func TestBest(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		name      string
		overrides []string
		values    []float64
		want      []int64
	}{
		{"one", []string{"eval.keep_best=1"}, []float64{.5, .7, .6, .7}, []int64{2}},
		{"two", []string{"eval.keep_best=2"}, []float64{.5, .7, .6, .7, .1}, []int64{2, 4}},
		{"more than come", []string{"eval.keep_best=9"}, []float64{.5, .7}, []int64{2, 1}},
		{"less is better", []string{"eval.keep_best=2", "eval.metric=loss"}, []float64{.5, .7, .6, .4}, []int64{4, 1}},
		{"less is better of anything", []string{"eval.keep_best=1", "eval.mode=min"}, []float64{.5, .7, .4}, []int64{3}},
		{"equal but for the order of rows", []string{"eval.keep_best=1"}, []float64{.45454545454545453, .4545454545454546}, []int64{1}},
		{"no numbers", []string{"eval.keep_best=1"}, []float64{nan, .1, nan}, []int64{2}},
		{"without end", []string{"eval.keep_best=2"}, []float64{.5, math.Inf(1), math.Inf(-1), .1}, []int64{2, 1}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			config := clustersConfig(t, c.overrides...)
			offers(t, config, 1, c.values...)
			if got := keptSteps(t, config); !slices.Equal(got, c.want) {
				t.Errorf("kept %v, want %v", got, c.want)
			}
		})
	}
}

// TestBestResumed continues at step 3, once more: what was kept of steps from
// there on is chosen again.
func TestBestResumed(t *testing.T) {
	c := clustersConfig(t, "eval.keep_best=2")
	offers(t, c, 1, .5, .4, .9, .8)
	offers(t, c, 3, .6)
	if got := keptSteps(t, c); !slices.Equal(got, []int64{3}) {
		t.Errorf("kept %v", got)
	}
	again := newBestCheckpointsOf(t, c)
	for range 2 { // sessions of one run; the first is lost
		if err := again.begin(4); err != nil || len(again.kept) != 1 {
			t.Errorf("kept %v, %v; want that of step 3", again.kept, err)
		}
	}
	newer := []byte(`{"version": 2}`)
	mustNoErr(t, os.WriteFile(filepath.Join(c.Logdir, logdir.BestDir, logdir.BestFile), newer, 0o666), os.WriteFile(filepath.Join(c.Logdir, earlyStopFile), newer, 0o666))
	for _, err := range []error{newBestCheckpointsOf(t, c).begin(1), (&earlyStop{name: filepath.Join(c.Logdir, earlyStopFile)}).begin(1)} {
		if !is[*versionError](err) || ExitCode(err) != ExitConfig {
			t.Errorf("a file of a newer version: %v", err)
		}
	}
	cut := []byte("{")
	mustNoErr(t, os.WriteFile(filepath.Join(c.Logdir, logdir.BestDir, logdir.BestFile), cut, 0o666), os.WriteFile(filepath.Join(c.Logdir, earlyStopFile), cut, 0o666))
	for _, err := range []error{newBestCheckpointsOf(t, c).begin(1), (&earlyStop{name: filepath.Join(c.Logdir, earlyStopFile)}).begin(1)} {
		if err == nil || !strings.Contains(err.Error(), ".json: unexpected end of JSON input; remove it") || ExitCode(err) != ExitIO {
			t.Errorf("damaged record: got %v, exit code %d", err, ExitCode(err))
		}
	}
}

// TestBestByAnotherMetric changes the metric between two lives: the check says so
// as the run does, for the config has to change.
func TestBestByAnotherMetric(t *testing.T) {
	c := clustersConfig(t, "eval.keep_best=2")
	offers(t, c, 1, .5)
	set := []config.Override{{Flag: "--set", Assignment: "eval.keep_best=2"}, {Flag: "--set", Assignment: "eval.metric=loss"}}
	changed, err := config.Load(c.File(), set)
	mustNoErr(t, err)
	for what, err := range map[string]error{
		"check": Check(t.Context(), c.File(), set, io.Discard),
		"run":   Run(t.Context(), changed, RunOptions{Stdout: io.Discard, Stderr: io.Discard}),
	} {
		if err == nil || !strings.Contains(err.Error(), "chosen by the max of accuracy, but the config says the min of loss; move ") || ExitCode(err) != ExitConfig {
			t.Errorf("%s: got %v, exit code %d", what, err, ExitCode(err))
		}
	}
}

// TestBestOfRemovedLogdir removes the logdir with the best checkpoints. What comes after
// that makes no logdir, and when there is one, worse evaluations are the best.
func TestBestOfRemovedLogdir(t *testing.T) {
	c := clustersConfig(t, "eval.keep_best=2")
	offer := newOffer(t, c, 1)
	if err := errors.Join(offer(1, .9), offer(2, .8), os.RemoveAll(c.Logdir)); err != nil {
		t.Fatal(err)
	}
	if err := offer(3, .4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a logdir: %v", err)
	}
	if _, err := os.Stat(c.Logdir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the logdir was made: %v", err)
	}
	if err := errors.Join(os.Mkdir(c.Logdir, 0o777), offer(4, .3), offer(5, .5)); err != nil {
		t.Fatal(err)
	}
	if got := keptSteps(t, c); !slices.Equal(got, []int64{5, 4}) {
		t.Errorf("kept %v", got)
	}
}

func TestKeepNone(t *testing.T) {
	c := clustersConfig(t)
	runJob(t, t.Context(), c)
	if _, err := os.Stat(filepath.Join(c.Logdir, logdir.BestDir)); !os.IsNotExist(err) {
		t.Errorf("there is a folder of the best: %v", err)
	}
}

// evalEvents returns the events of the evaluations of one run.
func evalEvents(t *testing.T, c *config.Config) []*tfpb.Event {
	t.Helper()
	dir := filepath.Join(c.Logdir, evalDir)
	if files := sessiontest.Files(t, dir, "events.out.tfevents.*"); len(files) != 1 {
		t.Fatalf("events files %v", files)
	}
	return sessiontest.Events(t, dir)
}

// evalSteps returns the steps of the evaluations that a logdir has.
func evalSteps(t *testing.T, c *config.Config) (steps []int64) {
	t.Helper()
	started := false
	for _, e := range evalEvents(t, c) {
		started = started || e.GetSessionLog().GetStatus() == tfpb.SessionLog_START
		if s := e.GetSummary(); s != nil {
			if len(s.Value) != 2 || s.Value[0].GetTag() != "accuracy" || s.Value[1].GetTag() != "loss" {
				t.Errorf("step %d has %v", e.GetStep(), s)
			}
			steps = append(steps, e.GetStep())
		}
	}
	if !started {
		t.Error("no session has begun")
	}
	return steps
}

func TestEvalDue(t *testing.T) {
	tests := []struct {
		name      string
		overrides []string
		want      []int64
	}{
		{"at the end", nil, []int64{40}},
		{"by steps", []string{"eval.steps=15"}, []int64{15, 30, 40}},
		{"by the older name", []string{"train.eval_steps=20"}, []int64{20, 40}},
		{"by a fast clock", []string{"eval.secs=1e-9", "train.steps=4"}, []int64{1, 2, 3, 4}},
		{"by both", []string{"eval.secs=3600", "eval.steps=25"}, []int64{25, 40}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clustersConfig(t, tt.overrides...)
			runJob(t, t.Context(), c)
			if diff := cmp.Diff(tt.want, evalSteps(t, c)); diff != "" {
				t.Errorf("evaluations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEvalCurve holds that a run which ends before the clock says so is evaluated
// at points spread over it, if they cost little, and at its end.
func TestEvalCurve(t *testing.T) {
	c := clustersConfig(t, "eval.secs=3600")
	runJob(t, t.Context(), c)
	steps := evalSteps(t, c)
	if len(steps) < 2 || len(steps) > evalPoints || steps[len(steps)-1] != 40 {
		t.Errorf("evaluations at %v", steps)
	}
	for _, s := range steps {
		if s%2 != 0 {
			t.Errorf("an evaluation at %d, which is not a multiple of 40 / %d", s, evalPoints)
		}
	}
	begun := time.Now()
	b := curveBudget{points: evalPoints, begun: begun}
	b.spend(begun, begun.Add(time.Second))
	if b.cheap(begun.Add(2*time.Second)) || !b.cheap(begun.Add(time.Minute)) {
		t.Error("an evaluation of a second is cheap in two seconds, or not in a minute")
	}
}

// What a killed run has left of an unfinished checkpoint is removed, but not through
// a link.
func TestBestSweepsTemps(t *testing.T) {
	for _, linked := range []bool{false, true} {
		c := clustersConfig(t, "eval.keep_best=1")
		dir, temp := filepath.Join(c.Logdir, logdir.BestDir), ".trainerd-0123456789abcdef.tmp"
		real := dir
		if linked {
			real = t.TempDir()
			if err := errors.Join(os.MkdirAll(c.Logdir, 0o777), os.Symlink(real, dir)); err != nil {
				t.Skip(err)
			}
		}
		if err := errors.Join(os.MkdirAll(real, 0o777), os.WriteFile(filepath.Join(real, temp), []byte("x"), 0o666)); err != nil {
			t.Fatal(err)
		}
		j, err := newJob(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := newBestCheckpoints(j).begin(1); err != nil {
			t.Error(err)
		}
		j.close()
		if _, err := os.Stat(filepath.Join(real, temp)); (err == nil) != linked {
			t.Errorf("through a link: %t; the temporary file is there: %t", linked, err == nil)
		}
	}
}

// TestLogdirRemovedWithBest removes the logdir of a run that keeps its best models: what
// it then keeps is what there is, and its config is there for those who predict.
func TestLogdirRemovedWithBest(t *testing.T) {
	c := clustersConfig(t, "train.steps=40", "eval.steps=5", "eval.keep_best=2", "supervisor.save_model_steps=5")
	removed := false
	err := Run(t.Context(), c, RunOptions{Stdout: io.Discard, Again: "again", Stderr: writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("step=15")) && !removed {
			removed = true
			return len(line), os.RemoveAll(c.Logdir)
		}
		return len(line), nil
	})})
	if err != nil || !removed {
		t.Fatalf("the logdir was removed: %v, and the run ended with %v", removed, err)
	}
	if steps := keptSteps(t, c); len(steps) != 2 || slices.Min(steps) < 15 {
		t.Errorf("kept %v", steps)
	}
	if _, err := os.Stat(filepath.Join(c.Logdir, keptConfig)); err != nil {
		t.Error(err)
	}
}

// TestBestPinned: what is no longer among the best goes, unless it is pinned.
func TestBestPinned(t *testing.T) {
	c := clustersConfig(t, "eval.keep_best=1", "train.steps=10")
	runJob(t, t.Context(), c)
	j, err := newJob(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	b := newBestCheckpoints(j)
	first := filepath.Join(b.dir, "model.ckpt-10")
	if err := checkpoint.Pin(nil, first); err != nil {
		t.Fatal(err)
	}
	for _, pinned := range []bool{true, false} {
		b.kept = []bestCheckpoint{{Step: 20, Name: "model.ckpt-20"}}
		if err := b.publish(); err != nil {
			t.Fatal(err)
		}
		if there := layout.Exists(first); there != pinned {
			t.Errorf("pinned %v: the checkpoint is there: %v", pinned, there)
		}
		if err := new(checkpoint.Saver).Unpin(first); err != nil {
			t.Fatal(err)
		}
	}
}
