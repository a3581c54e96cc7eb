package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/graphrun"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/report"
	"github.com/trainerd/trainerd/trainerd/session"
)

// clusters is a file of rows around two points, easy to tell apart.
func clusters(rows int) string {
	var b strings.Builder
	for i := range rows {
		class := i % 2
		fmt.Fprintf(&b, "%d.%d,%d,%d\n", 4*class, i%7, 3-4*class+i%3, class)
	}
	return b.String()
}

const clustersJob = `logdir = "LOGDIR"
[data]
file = "clusters.csv"
test_fraction = 0.25
batch_size = 4
[model]
family = "logistic"
[train]
steps = 40
[supervisor]
save_model_secs = 0
save_model_steps = 10
save_summaries_steps = 10
save_summaries_secs = 0
`

// clustersConfig writes the job and its data to a new folder and loads it.
func clustersConfig(t *testing.T, overrides ...string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"clusters.csv": clusters(80),
		"job.toml":     strings.Replace(clustersJob, "LOGDIR", filepath.Join(dir, "logs"), 1),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var all []config.Override
	for _, o := range overrides {
		all = append(all, config.Override{Flag: "--set " + o, Assignment: o})
	}
	c, err := config.Load(filepath.Join(dir, "job.toml"), all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// runJob runs a job and returns what it says.
func runJob(t *testing.T, ctx context.Context, c *config.Config) (stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	if err := Run(ctx, c, RunOptions{Stdout: &out, Stderr: &log, Again: "again"}); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	return out.String(), log.String()
}

// TestStopInTheLastStep stops a job that has just come to its end.
func TestStopInTheLastStep(t *testing.T) {
	c := clustersConfig(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	err := Run(ctx, c, RunOptions{Stdout: &out, Stderr: writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("msg=training step=40 ")) {
			cancel()
		}
		return len(line), nil
	})})
	if err != nil || ctx.Err() == nil {
		t.Fatalf("%v; the context is %v", err, ctx.Err())
	}
	report, err := os.ReadFile(filepath.Join(c.Logdir, report.JSONName))
	if err != nil || !bytes.Contains(report, []byte(`"outcome": "completed"`)) {
		t.Errorf("the report is %s, %v", report, err)
	}
	if !strings.HasPrefix(out.String(), "test accuracy: ") {
		t.Errorf("stdout is %s", out.String())
	}
}

// writerFunc is a writer that is a function.
type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func lastStep(t *testing.T, c *config.Config) int64 {
	t.Helper()
	found, err := checkpoint.Find(c.Logdir, checkpoint.DefaultLatestFilename, c.Supervisor.CheckpointBasename)
	if err != nil || len(found.Prefixes) == 0 {
		t.Fatalf("checkpoints %v, %v", found, err)
	}
	return (&program.Program{StepKey: trainerd.DefaultGlobalStep}).SavedStep(found.Prefixes[0])
}

func TestRun(t *testing.T) {
	c := clustersConfig(t)
	stdout, stderr := runJob(t, t.Context(), c)
	want := fmt.Sprintf("test accuracy: 1.000\nalways the most frequent class: 0.650\nnext:\n  trainerd tensorboard %[1]s\n  ckpt ls %[1]s\n  trainerd eval %[1]s\n  trainerd predict %[1]s %[2]s\n", c.Logdir, c.Data.File)
	if stdout != want {
		t.Errorf("stdout is\n%s\nwant\n%s", stdout, want)
	}
	for _, line := range []string{`msg="training from the beginning" steps=40`, "msg=saved step=10 ", "msg=saved step=40 "} {
		if !strings.Contains(stderr, line) {
			t.Errorf("the log has no %s:\n%s", line, stderr)
		}
	}
	if got := lastStep(t, c); got != 40 {
		t.Errorf("the last checkpoint is of step %d, want 40", got)
	}
	stdout, stderr = runJob(t, t.Context(), c)
	if wantLine := "job is complete: step 40 of 40, " + filepath.Join(c.Logdir, "model.ckpt-40") + "\n"; stdout != wantLine+want || stderr != "" {
		t.Errorf("again: stdout\n%s\nstderr\n%s", stdout, stderr)
	}
}

// stopAfter is a writer that cancels a context when a text was written.
type stopAfter struct {
	bytes.Buffer
	text   string
	cancel context.CancelFunc
}

func (s *stopAfter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), s.text) {
		s.cancel()
	}
	return s.Buffer.Write(b)
}

// TestRunStopped stops a run in the middle and compares what it comes to with
// a run that was left alone.
func TestRunStopped(t *testing.T) {
	alone := clustersConfig(t, "train.steps=200")
	runJob(t, t.Context(), alone)

	c := clustersConfig(t, "train.steps=200")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &stopAfter{text: "msg=saved step=20 ", cancel: cancel}
	var out bytes.Buffer
	if err := Run(ctx, c, RunOptions{Stdout: &out, Stderr: log, Again: "again"}); err != nil {
		t.Fatal(err)
	}
	step := lastStep(t, c)
	if step < 20 || step >= 200 || out.Len() > 0 {
		t.Fatalf("stopped at step %d, stdout %q", step, out.String())
	}
	if want := fmt.Sprintf("stopped at step %d of 200, and saved\nto resume, type: again\n", step); !strings.HasSuffix(log.String(), want) {
		t.Errorf("the log does not end in\n%s\n%s", want, log.String())
	}
	_, stderr := runJob(t, t.Context(), c)
	if want := fmt.Sprintf(`restored; training continues" step=%d `, step); !strings.Contains(stderr, want) {
		t.Errorf("the log has no %s\n%s", want, stderr)
	}
	for _, suffix := range []string{".index", ".data-00000-of-00001"} {
		a, errA := os.ReadFile(filepath.Join(alone.Logdir, "model.ckpt-200"+suffix))
		b, errB := os.ReadFile(filepath.Join(c.Logdir, "model.ckpt-200"+suffix))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("model.ckpt-200%s differs from that of the undisturbed run (%v, %v)", suffix, errA, errB)
		}
	}
}

func TestRunCancelledBefore(t *testing.T) {
	c := clustersConfig(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if stdout, stderr := runJob(t, ctx, c); stdout != "" || !strings.Contains(stderr, "stopped while reading the data; nothing was changed") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
	if _, err := os.Stat(c.Logdir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the run has made a logdir, or %v", err)
	}
}

// TestRunOnTerminal looks at what a person sees: no log lines, a bar, the
// newest checkpoint.
func TestRunOnTerminal(t *testing.T) {
	var out, screen bytes.Buffer
	if err := Run(t.Context(), clustersConfig(t), RunOptions{Stdout: &out, Stderr: &screen, Terminal: true}); err != nil {
		t.Fatal(err)
	}
	text := screen.String()
	if !strings.Contains(text, "step 40/40  loss ") || !strings.Contains(text, "100%") || strings.Contains(text, "level=INFO") {
		t.Errorf("the screen shows %q", text)
	}
	if !strings.HasPrefix(out.String(), "test accuracy: ") {
		t.Errorf("stdout %q", out.String())
	}
}

func TestRunErrors(t *testing.T) {
	tests := []struct {
		name      string
		overrides []string
		spoil     func(t *testing.T, c *config.Config)
		want      string
		code      int
	}{
		{name: "no data", overrides: []string{"data.file=nowhere.csv"}, want: "nowhere.csv: cannot be opened", code: ExitData},
		{name: "inputs differ", overrides: []string{"model.inputs=7"}, want: "model.inputs: is 7, but the data have 2 features", code: ExitConfig},
		{name: "logdir is a file", want: "not a directory", code: ExitIO, spoil: func(t *testing.T, c *config.Config) {
			if err := os.WriteFile(c.Logdir, nil, 0o666); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "another model", want: `model.family: was "logistic" when model.ckpt-40 was trained, and is "mlp"`, code: ExitConfig, spoil: func(t *testing.T, c *config.Config) {
			runJob(t, t.Context(), c)
			c.Model.Family, c.Model.Hidden = "mlp", []int{3}
		}},
		{name: "another optimizer", want: "is of a different model", code: ExitConfig, spoil: func(t *testing.T, c *config.Config) {
			runJob(t, t.Context(), c)
			c.Model.Optimizer = "adam"
		}},
		{name: "damaged checkpoints", want: "no usable checkpoint", code: ExitIO, spoil: func(t *testing.T, c *config.Config) {
			runJob(t, t.Context(), c)
			files, _ := filepath.Glob(filepath.Join(c.Logdir, "*.index"))
			for _, f := range files {
				if err := os.WriteFile(f, []byte("no index"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{name: "loss overflows", overrides: []string{"model.learning_rate=1e38", "model.family=softmax"}, want: "the loss is ", code: ExitFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := clustersConfig(t, tt.overrides...)
			if tt.spoil != nil {
				tt.spoil(t, c)
			}
			var out, log bytes.Buffer
			err := Run(t.Context(), c, RunOptions{Stdout: &out, Stderr: &log})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			if code := ExitCode(err); code != tt.code {
				t.Errorf("exit code %d for %v, want %d", code, err, tt.code)
			}
		})
	}
}

func TestEvaluateInParts(t *testing.T) {
	c := clustersConfig(t)
	if err := os.WriteFile(c.Data.File, []byte(clusters(6000)), 0o666); err != nil {
		t.Fatal(err)
	}
	c.Data.TestFraction = .5
	j, err := newJob(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := j.probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.sess.Close()
	got, err := j.tester.evaluate(t.Context(), s.sess)
	if err != nil {
		t.Fatal(err)
	}
	feeds := make(program.Feed)
	if _, err := j.input.Test(0, j.data.TestRows, feeds); err != nil {
		t.Fatal(err)
	}
	out, err := s.sess.Run(t.Context(), feeds, []string{"accuracy:0", "loss:0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	accuracy, _ := program.ScalarFloat(out[0])
	loss, _ := program.ScalarFloat(out[1])
	near := func(a, b float64) bool { return a-b < 1e-5 && b-a < 1e-5 }
	if got.rows != 3000 || !near(got.values[0], accuracy) || !near(got.values[1], loss) {
		t.Errorf("got %+v, want accuracy %v and loss %v of 3000 rows", got, accuracy, loss)
	}
}

// multiples returns 1 and the multiples of a step up to the last.
func multiples(every, last int64) []int64 {
	all := []int64{1}
	for step := every; step <= last; step += every {
		all = append(all, step)
	}
	return all
}

func TestSummaryDue(t *testing.T) {
	due := func(steps int64, s config.Supervisor, from int64) (at []int64) {
		tr := &training{job: &job{config: &config.Config{Supervisor: s}, steps: steps}, summaryStep: from - 1}
		for step := from; step <= steps; step++ {
			due := tr.summaryDue(step)
			tr.noteSummary(step, due)
			if due {
				at = append(at, step)
			}
		}
		return at
	}
	tests := []struct {
		name        string
		steps, from int64
		config      config.Supervisor
		want        []int64
	}{
		{"by steps", 25, 1, config.Supervisor{SaveSummariesSteps: 10, SaveSummariesSecs: 1}, []int64{1, 10, 20, 25}},
		{"resumed", 25, 11, config.Supervisor{SaveSummariesSteps: 10}, []int64{20, 25}},
		{"off", 25, 1, config.Supervisor{}, nil},
		{"by the clock", 3, 1, config.Supervisor{SaveSummariesSecs: 3600}, []int64{1, 2, 3}},
		{"by the clock, a long curve", 1000, 1, config.Supervisor{SaveSummariesSecs: 3600}, multiples(10, 1000)},
		{"by the clock, resumed", 1000, 996, config.Supervisor{SaveSummariesSecs: 3600}, []int64{996, 1000}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, due(tt.steps, tt.config, tt.from)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{fmt.Errorf("a: %w", &config.Error{Problems: []*config.Problem{{Reason: "x"}}}), 78},
		{errors.Join(&model.ConfigError{Key: "hidden"}), 78},
		{&checkpoint.MismatchError{}, 78},
		{errors.Join(&config.Error{}, &dataset.Error{}), 78},
		{&dataset.Error{Err: fs.ErrNotExist}, 65},
		{&dataset.Errors{Problems: []*dataset.Error{{}}}, 65},
		{&graphrun.FeedError{Err: errors.New("x")}, 65},
		{&graphrun.ArgumentError{Reason: "x"}, 2},
		{&program.FileError{Err: errors.New("x")}, 74},
		{fmt.Errorf("b: %w", &logdir.LockedError{}), 75},
		{fmt.Errorf("b: %w", &session.OpError{Code: tfpb.Code_UNIMPLEMENTED}), 78},
		{&session.OpError{Code: tfpb.Code_UNAVAILABLE}, 1},
		{&checkpoint.NoIntactError{}, 74},
		{&fs.PathError{Op: "open", Err: syscall.EACCES}, 74},
		{&trainerd.SaveFailedError{Err: errors.New("x")}, 74},
		{&os.LinkError{Err: syscall.ENOSPC}, 74},
		{fmt.Errorf("final checkpoint: %w", &checkpoint.NoSpaceError{Dir: "/log"}), 74},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.err); got != tt.want {
			t.Errorf("ExitCode(%T %v) = %d, want %d", tt.err, tt.err, got, tt.want)
		}
	}
}

func TestScalars(t *testing.T) {
	if _, err := program.ScalarFloat(&ckptfmt.Tensor{DType: tfpb.DataType_DT_INT64, Data: make([]byte, 8)}); err == nil {
		t.Error("an integer is taken for a float")
	}
}

func TestCheckChangesNothing(t *testing.T) {
	c := clustersConfig(t)
	var out bytes.Buffer
	if err := Check(t.Context(), c.File(), nil, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "fresh: begins at step 0") || !strings.Contains(out.String(), "parameters   3\n") {
		t.Errorf("check says\n%s", out.String())
	}
	if _, err := os.Stat(c.Logdir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the logdir was made: %v", err)
	}
}

func TestSteps(t *testing.T) {
	tests := []struct {
		train config.Train
		batch int
		want  int64
	}{
		{config.Train{Steps: 7}, 4, 7},
		{config.Train{Epochs: 1}, 4, 15},
		{config.Train{Epochs: 0.01}, 4, 1},
		{config.Train{Epochs: 2.5}, 7, 22},
	}
	for _, tt := range tests {
		c := clustersConfig(t)
		c.Train, c.Data.BatchSize = tt.train, tt.batch
		j, err := newJob(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if j.steps != tt.want {
			t.Errorf("%+v: %d steps, want %d", tt, j.steps, tt.want)
		}
	}
}
