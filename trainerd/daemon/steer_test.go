package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// steered starts a job that has no end by itself, and returns how to steer it
// and what waits for its end.
func steered(t *testing.T, overrides ...string) (c *config.Config, m *control.Monitor, job control.Job, wait func() string) {
	t.Helper()
	c = clustersConfig(t, append([]string{"train.steps=1000000000", "supervisor.save_model_steps=1000000"}, overrides...)...)
	m = control.NewMonitor(c.Name, c.Logdir, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var said bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c, RunOptions{Stdout: io.Discard, Stderr: &said, Monitor: m}) }()
	for {
		var err error
		if job, err = m.Job(); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the job has ended: %v\n%s", err, said.String())
		case <-time.After(time.Millisecond):
		}
	}
	return c, m, job, func() string {
		t.Helper()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		return said.String()
	}
}

func TestSteer(t *testing.T) {
	c, m, job, wait := steered(t, "supervisor.save_model_secs=1000")
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(job.Pause(ctx))
	must(job.Pause(ctx)) // which it is already
	step := m.Status().Step
	if got := m.Status().Phase; got != control.Paused {
		t.Errorf("a paused job is %s", got)
	}
	saved, err := job.Save(ctx)
	must(err)
	if saved.Step != step {
		t.Errorf("saved step %d while step %d is paused", saved.Step, step)
	}
	if _, err := os.Stat(saved.Prefix + ".index"); err != nil {
		t.Error(err)
	}
	again, err := job.Save(ctx)
	must(err)
	if again.Prefix != saved.Prefix {
		t.Errorf("the same step was saved as %s and %s", saved.Prefix, again.Prefix)
	}
	kept, err := job.Keep(step)
	must(err)
	if _, err := os.Stat(kept + ".pin"); kept != saved.Prefix || err != nil {
		t.Errorf("kept %s, %v", kept, err)
	}
	must(job.Note(ctx, "a note"))
	if got := m.Status().Step; got != step {
		t.Errorf("a paused job went from step %d to %d", step, got)
	}
	must(job.Resume(ctx))

	for key, value := range map[string]string{
		"eval.steps": "100", "eval.secs": "0.5", "supervisor.save_model_steps": "50",
		"supervisor.save_model_secs":      "0.01",
		"supervisor.save_summaries_steps": "0", "supervisor.save_summaries_secs": "0.01", "learning_rate": "1e-4",
	} {
		if text, err := job.Set(ctx, key, value); err != nil || text == "" {
			t.Errorf("%s=%s: %q, %v", key, value, text, err)
		}
	}
	for key, value := range map[string]string{
		"eval.steps": "1.5", "eval.secs": "-1", "supervisor.save_model_secs": "1e20", "supervisor.save_summaries_secs": "1e300", "supervisor.save_model_steps": "1e300", "learning_rate": "NaN", "name": "1", "": "1",
	} {
		var refused *control.RefusedError
		if text, err := job.Set(ctx, key, value); !errors.As(err, &refused) {
			t.Errorf("%s=%s: %q, %v", key, value, text, err)
		}
	}
	var refused *control.RefusedError
	if _, err := job.Keep(step + 1000000); !errors.As(err, &refused) {
		t.Errorf("keeping what is not there: %v", err)
	}
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
	if text := wait(); !strings.Contains(text, ", and saved") {
		t.Errorf("the job says\n%s", text)
	}
	if last := lastStep(t, c); last <= step {
		t.Errorf("the last checkpoint is of step %d, the job was paused at %d", last, step)
	}
	// Nobody reads what is asked for now.
	if err := job.Pause(ctx); !errors.As(err, &refused) {
		t.Errorf("pausing a job that has ended: %v", err)
	}
	if err := job.Note(ctx, "too late"); !errors.As(err, &refused) {
		t.Errorf("a note for a job that has ended: %v", err)
	}
	if got := m.Status().Phase; got != control.Ended {
		t.Errorf("the job is %s", got)
	}
}

// A paused job can be stopped, and who asks may give up.
func TestSteerPaused(t *testing.T) {
	_, m, job, wait := steered(t) // without checkpoints by the clock
	var refused *control.RefusedError
	if _, err := job.Set(t.Context(), "supervisor.save_model_secs", "10"); !errors.As(err, &refused) {
		t.Errorf("an interval that was 0 is changed: %v", err)
	}
	if err := job.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := job.Resume(gone); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
	wait()
}

// signs counts the steps of a session.
type signs struct {
	session.Session
	n int
}

func (s *signs) Run(context.Context, map[string]*ckptfmt.Tensor, []string, []string) ([]*ckptfmt.Tensor, error) {
	s.n++
	return nil, nil
}

// A task of a synchronous cluster that is paused gives signs: the others wait for it longer
// than cluster.patience_secs.
func TestPausedTaskGivesSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := &config.Config{Master: "grpc://worker:2222"}, &program.Program{ApplyGrads: []string{"apply"}}
		tr := &training{job: &job{task: cluster.NewTask(c, p, slog.New(slog.DiscardHandler), nil)}, paused: true}
		sess := &signs{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		newSteering(tr, sess).serve(ctx)
		if want := int(10 * time.Minute / cluster.SignEvery); sess.n < want-1 || sess.n > want+1 {
			t.Errorf("%d signs in a pause of ten minutes, want %d", sess.n, want)
		}
	})
}

// A pause outlives the session in which it began: the next one waits for the end of it.
func TestPauseOutlivesSession(t *testing.T) {
	_, m, job, wait := steered(t)
	if err := job.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	sv := job.(*steering).t.sv
	sv.MaxRestarts = 1
	sv.Coordinator().RequestStop(session.ErrUnavailable)
	for m.Status().Restarts == 0 || m.Status().Phase != control.Paused {
		if t.Context().Err() != nil {
			t.Fatalf("the job is %s", m.Status().Phase)
		}
		time.Sleep(time.Millisecond)
	}
	again, err := m.Job()
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Pause(t.Context()); err != nil { // it is between two steps
		t.Error(err)
	}
	if step := again.(*steering).t.made; step != 0 {
		t.Errorf("the new session made %d steps in the pause", step)
	}
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
	wait()
}

// A run that waits for its servers is not ready, and ends when it is asked to stop.
func TestStopWhilePreparing(t *testing.T) {
	c := clustersConfig(t, `master="grpc://127.0.0.1:1"`)
	m := control.NewMonitor(c.Name, c.Logdir, 1)
	serving := make(chan struct{})
	serve := func(*slog.Logger) func() { close(serving); return func() {} }
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), c, RunOptions{Stdout: io.Discard, Stderr: io.Discard, Monitor: m, Serve: serve})
	}()
	<-serving
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
