package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/report"
)

// A jobKind is a kind of job, by what holds its model: doc/any-language.md has the
// same table in words. Each trains to train.steps, and saves every ten steps.
type jobKind struct {
	name string
	// overrides make a job of the kind; the first says the steps.
	overrides func(t *testing.T) []string
	// prefix begins the names of its checkpoints, and data ends that of the largest
	// file of one.
	prefix, data string
}

// childProgram trains in a shell: it resumes from its newest checkpoint, and saves
// when it is asked to, by name and rename.
const childProgram = `
step=${TRAINERD_STEP:-0}
save() { echo "{\"step\": $step}" > "$TRAINERD_LOGDIR/ckpt-$step.json.tmp"; mv "$TRAINERD_LOGDIR/ckpt-$step.json.tmp" "$TRAINERD_LOGDIR/ckpt-$step.json"; }
trap 'save; exit 0' TERM
trap save USR1
while [ $step -lt $TRAINERD_STEPS ]; do
  step=$((step + 1))
  echo "step=$step loss=0.$((1000 - step))"
  if [ $((step % 10)) = 0 ]; then save; fi
  if [ $TRAINERD_STEPS -gt 1000 ]; then sleep 0.01; fi
done
`

var jobKinds = []*jobKind{
	{"embedded", func(*testing.T) []string { return nil }, "model.ckpt-", ".data-00000-of-00001"},
	{"remote", func(t *testing.T) []string { return []string{"master=grpc://" + serveMaster(t)} }, "model.ckpt-", ".data-00000-of-00001"},
	{"child", func(*testing.T) []string { return nil }, "ckpt-", ".json"},
}

// load returns the config of a job of the kind, in a folder.
func (k *jobKind) load(t *testing.T, dir string, overrides ...string) *config.Config {
	t.Helper()
	text := strings.Replace(clustersJob, "LOGDIR", filepath.Join(dir, "logs"), 1)
	if k.name == "child" {
		text = fmt.Sprintf("logdir = %q\n[train]\nsteps = 40\n[child]\ncommand = [\"sh\", %q]\ncheckpoints = \"ckpt-*.json\"\nsave_signal = \"SIGUSR1\"\n[supervisor]\nsave_model_secs = 0\n",
			filepath.Join(dir, "logs"), filepath.Join(dir, "train.sh"))
	}
	for name, text := range map[string]string{"clusters.csv": clusters(80), "train.sh": childProgram, "job.toml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var all []config.Override
	for _, o := range append(k.overrides(t), overrides...) {
		all = append(all, config.Override{Flag: "--set " + o, Assignment: o})
	}
	c, err := config.Load(filepath.Join(dir, "job.toml"), all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// saved returns the steps of the checkpoints in a folder.
func (k *jobKind) saved(t *testing.T, dir string) (steps []int) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, k.prefix+"*"+k.data))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		var step int
		if _, err := fmt.Sscanf(strings.TrimPrefix(filepath.Base(name), k.prefix), "%d", &step); err != nil {
			t.Fatal(name, err)
		}
		steps = append(steps, step)
	}
	slices.Sort(steps)
	return steps
}

func forEachJobKind(t *testing.T, test func(t *testing.T, k *jobKind)) {
	if runtime.GOOS == "windows" {
		t.Skip("the child is a shell script")
	}
	for _, k := range jobKinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// Retention, steps to keep, and pins hold over a restart of the job.
func TestPromiseRetention(t *testing.T) {
	forEachJobKind(t, func(t *testing.T, k *jobKind) {
		dir := t.TempDir()
		policy := []string{"supervisor.max_to_keep=2", "supervisor.keep_steps=[10]"}
		c := k.load(t, dir, policy...)
		runJob(t, t.Context(), c)
		if got := k.saved(t, c.Logdir); !slices.Equal(got, []int{10, 30, 40}) {
			t.Errorf("checkpoints %v, want 10, 30 and 40", got)
		}
		pin := filepath.Join(c.Logdir, fmt.Sprint(k.prefix, 30)) + ".pin"
		if k.name == "child" {
			pin = filepath.Join(c.Logdir, "ckpt-30.json") + ".pin"
		}
		if err := os.WriteFile(pin, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		runJob(t, t.Context(), k.load(t, dir, append(policy, "train.steps=70")...))
		if got := k.saved(t, c.Logdir); !slices.Equal(got, []int{10, 30, 60, 70}) {
			t.Errorf("checkpoints %v, want 10, 30, which is pinned, 60 and 70", got)
		}
	})
}

// A damaged newest checkpoint is moved aside, and the job continues from the one
// before.
func TestPromiseQuarantine(t *testing.T) {
	forEachJobKind(t, func(t *testing.T, k *jobKind) {
		dir := t.TempDir()
		c := k.load(t, dir)
		runJob(t, t.Context(), c)
		newest := filepath.Join(c.Logdir, fmt.Sprint(k.prefix, 40)+k.data)
		if err := os.Truncate(newest, 3); err != nil {
			t.Fatal(err)
		}
		_, log := runJob(t, t.Context(), k.load(t, dir, "train.steps=60"))
		if !strings.Contains(log, "step=30") {
			t.Errorf("it does not continue from step 30:\n%s", log)
		}
		moved, err := filepath.Glob(filepath.Join(c.Logdir, "damaged", "*", filepath.Base(newest)))
		if err != nil || len(moved) != 1 {
			t.Errorf("moved aside are %v, %v", moved, err)
		}
		if got := k.saved(t, c.Logdir); !slices.Contains(got, 60) {
			t.Errorf("checkpoints %v", got)
		}
	})
}

// Hyperparameters, the report and the exit code of a complete job.
func TestPromiseRecords(t *testing.T) {
	forEachJobKind(t, func(t *testing.T, k *jobKind) {
		c := k.load(t, t.TempDir())
		runJob(t, t.Context(), c)
		tags := tagsOf(t, c.Logdir)
		for _, tag := range []string{"loss", "_hparams_/session_start_info", "_hparams_/session_end_info"} {
			if !slices.Contains(tags, tag) {
				t.Errorf("no %s in the events: %v", tag, tags)
			}
		}
		text, err := os.ReadFile(filepath.Join(c.Logdir, "run-report.json"))
		if err != nil {
			t.Fatal(err)
		}
		var report struct{ Outcome string }
		if err := json.Unmarshal(text, &report); err != nil || report.Outcome != "completed" {
			t.Errorf("outcome %q, %v", report.Outcome, err)
		}
	})
}

// tagsOf returns the tags of the summaries in a folder.
func tagsOf(t *testing.T, dir string) (tags []string) {
	t.Helper()
	for _, e := range sessiontest.Events(t, dir) {
		for _, v := range e.GetSummary().GetValue() {
			tags = append(tags, v.GetTag())
		}
	}
	return tags
}

// While it trains: ready and status for systemd, save, keep, set, note, pause, a
// second run that is refused, and a stop that saves.
func TestPromiseControl(t *testing.T) {
	forEachJobKind(t, func(t *testing.T, k *jobKind) {
		c := k.load(t, t.TempDir(), "train.steps=1000000000", "supervisor.save_model_steps=1000000000", "supervisor.save_model_secs=1000000", "supervisor.max_to_keep=0")
		m := control.NewMonitor(c.Name, c.Logdir, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var said bytes.Buffer
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, c, RunOptions{Stdout: &bytes.Buffer{}, Stderr: &said, Monitor: m}) }()
		for m.Status().Step < 5 || !m.Ready() {
			select {
			case err := <-ended:
				t.Fatalf("the job has ended: %v\n%s", err, said.String())
			case <-time.After(time.Millisecond):
			}
		}
		status := m.Status()
		if text := status.Text(); !strings.Contains(text, "step ") {
			t.Errorf("systemd is told %q", text)
		}
		job, err := m.Job()
		if err != nil {
			t.Fatal(err)
		}
		if err := logdir.Check(c.Logdir); err == nil {
			t.Error("a second run would not be refused")
		}
		steer(t, job)
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		if got := k.saved(t, c.Logdir); len(got) < 2 || int64(got[len(got)-1]) < m.Status().Step {
			t.Errorf("checkpoints %v after a stop at step %d", got, m.Status().Step)
		}
		if text, err := os.ReadFile(filepath.Join(c.Logdir, report.JSONName)); err != nil || !bytes.Contains(text, []byte(`"stopped_by": "a request"`)) {
			t.Errorf("the report does not say by what it was stopped: %v\n%s", err, text)
		}
	})
}

// steer does all that may be asked of a job.
func steer(t *testing.T, job control.Job) {
	t.Helper()
	ctx := t.Context()
	saved, err := job.Save(ctx)
	if err != nil || saved.Step < 5 {
		t.Fatalf("saved %+v, %v", saved, err)
	}
	if _, err := job.Keep(saved.Step); err != nil {
		t.Error(err)
	}
	if found, err := filepath.Glob(saved.Prefix + "*" + ".pin"); err != nil || len(found) == 0 {
		t.Errorf("no pin of %s: %v", saved.Prefix, err)
	}
	if _, err := job.Set(ctx, "supervisor.save_model_secs", "1000"); err != nil {
		t.Error(err)
	}
	if _, err := job.Set(ctx, "no.such_key", "1"); err == nil {
		t.Error("a setting that does not exist is set")
	}
	for _, do := range []func() error{func() error { return job.Note(ctx, "a note") }, func() error { return job.Pause(ctx) }, func() error { return job.Resume(ctx) }} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
}
