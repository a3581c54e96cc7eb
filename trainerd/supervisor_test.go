package trainerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// newSupervisor makes a Supervisor that saves at the end and at the steps given,
// for a model that has its variables' names as nodes.
func newSupervisor(m *sessiontest.Model, logdir string, saveSteps int64) *Supervisor {
	return &Supervisor{
		NewSession:         m.NewSession,
		InitOp:             Nodes("init"),
		Logdir:             logdir,
		SaveModelEvery:     -1,
		SaveModelSteps:     saveSteps,
		SaveSummariesEvery: -1,
	}
}

func TestRunSavesAndResumes(t *testing.T) {
	dir := t.TempDir()
	log, lines := sessiontest.NewLog()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 10)
	sv.Logger = log
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 25)))
	sessiontest.WantLog(t, lines, "saved step=10 ", "saved step=20 ", "saved step=25 ")

	m2 := sessiontest.Counter()
	sv2 := newSupervisor(m2, dir, 10)
	var from int64
	sessiontest.MustNoErr(t, sv2.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		from, _ = session.ScalarInt(m2.Get("global_step"))
		return stepsTo(m2, sv2, 30)(ctx, s)
	}))
	if from != 25 {
		t.Errorf("resumed at step %d; want 25", from)
	}
	if diff := cmp.Diff(m2.Get("w").Data, ckptfmt.Scalar(float32(15)).Data); diff != "" {
		t.Errorf("w after 30 steps (-got +want):\n%s", diff)
	}
	want := [][]string{
		{"version", "START(0)", "CHECKPOINT(10)", "CHECKPOINT(20)", "CHECKPOINT(25)", "STOP(0)"},
		{"version", "START(26)", "CHECKPOINT(30)", "STOP(0)"},
	}
	if diff := cmp.Diff(events(t, dir), want); diff != "" {
		t.Errorf("events (-got +want):\n%s", diff)
	}
	state, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	sessiontest.MustNoErr(t, err)
	wantState := `model_checkpoint_path: "model.ckpt-30"
all_model_checkpoint_paths: "model.ckpt-10"
all_model_checkpoint_paths: "model.ckpt-20"
all_model_checkpoint_paths: "model.ckpt-25"
all_model_checkpoint_paths: "model.ckpt-30"
`
	if diff := cmp.Diff(string(state), wantState); diff != "" {
		t.Errorf("checkpoint file (-got +want):\n%s", diff)
	}
}

func TestRunOutcome(t *testing.T) {
	errTrain := errors.New("training failed")
	errService := errors.New("service failed")
	tests := []struct {
		name      string
		train     func(ctx context.Context, sv *Supervisor) error
		want      error
		wantFinal bool
	}{
		{"returns", func(context.Context, *Supervisor) error { return nil }, nil, true},
		{"end of input", func(context.Context, *Supervisor) error { return session.ErrOutOfRange }, nil, true},
		{"fails", func(context.Context, *Supervisor) error { return errTrain }, errTrain, false},
		{"asks for a stop", func(_ context.Context, sv *Supervisor) error { sv.RequestStop(nil); return nil }, nil, true},
		{"asks for a stop with an error", func(_ context.Context, sv *Supervisor) error { sv.RequestStop(errTrain); return nil }, errTrain, false},
		{"service fails", func(ctx context.Context, sv *Supervisor) error {
			sv.Loop("bad", Long, func(context.Context) error { return errService })
			<-ctx.Done()
			return nil
		}, errService, true},
		{"service fails, then the training", func(ctx context.Context, sv *Supervisor) error {
			sv.Loop("bad", Long, func(context.Context) error { return errService })
			<-ctx.Done()
			return errTrain
		}, errService, false},
		{"service ends the input", func(ctx context.Context, sv *Supervisor) error {
			sv.Loop("reader", Long, func(context.Context) error { return &session.OpError{Code: tfpb.Code_OUT_OF_RANGE} })
			<-ctx.Done()
			return nil
		}, nil, true},
		{"returns its cancellation", func(ctx context.Context, sv *Supervisor) error {
			sv.RequestStop(nil)
			<-ctx.Done()
			return ctx.Err()
		}, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := sessiontest.Counter()
			sv := newSupervisor(m, dir, 1000)
			err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
				m.Step()
				return tt.train(ctx, sv)
			})
			if !errors.Is(err, tt.want) || (tt.want == nil && err != nil) {
				t.Errorf("Run = %v; want %v", err, tt.want)
			}
			if !sv.ShouldStop() {
				t.Error("ShouldStop is false after Run")
			}
			if got := len(sessiontest.Files(t, dir, "model.ckpt-1.index")) == 1; got != tt.wantFinal {
				t.Errorf("final checkpoint: %v; want %v", got, tt.wantFinal)
			}
			if last := events(t, dir)[0]; last[len(last)-1] != "STOP(0)" {
				t.Errorf("events end with %q; want STOP", last[len(last)-1])
			}
			if m.Open != 0 {
				t.Errorf("%d sessions left open", m.Open)
			}
		})
	}
}

func TestRunPanics(t *testing.T) {
	tests := []struct {
		name  string
		train func(ctx context.Context, sv *Supervisor) error
	}{
		{"train", func(context.Context, *Supervisor) error { panic("boom") }},
		{"service", func(ctx context.Context, sv *Supervisor) error {
			sv.Loop("service", Long, func(context.Context) error { panic("boom") })
			<-ctx.Done()
			return nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			m := sessiontest.Counter()
			sv := newSupervisor(m, dir, 1000)
			err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
				m.Step()
				return tt.train(ctx, sv)
			})
			var p *coord.PanicError
			if !errors.As(err, &p) || p.Name != tt.name || p.Value != "boom" || !strings.Contains(p.Stack, "TestRunPanics") {
				t.Errorf("Run = %v; want a PanicError of %s with its stack", err, tt.name)
			}
			if got := sessiontest.Files(t, dir, "*.index"); len(got) > 0 {
				t.Errorf("checkpoints after a panic: %v; want none", got)
			}
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error { return nil }))
		})
	}
}

// A signal ends the run with a final checkpoint and no error.
func TestRunCancelled(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 1000)
	sessiontest.MustNoErr(t, sv.Run(ctx, func(ctx context.Context, _ session.Session) error {
		m.Step()
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}))
	if got := sessiontest.Files(t, dir, "model.ckpt-1.index"); len(got) != 1 {
		t.Errorf("no final checkpoint")
	}
}

// A step that has begun is not torn by a stop.
func TestStopDoesNotInterruptStep(t *testing.T) {
	m := sessiontest.Counter()
	m.Op("slow", func(s *sessiontest.Session) error { return nil })
	sv := newSupervisor(m, "", 0)
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	sessiontest.MustNoErr(t, sv.Run(ctx, func(ctx context.Context, s session.Session) error {
		if ctx.Value(key{}) != "value" {
			t.Error("train's context lacks the values of Run's")
		}
		derived, cancel := context.WithCancel(ctx)
		defer cancel()
		sv.RequestStop(nil)
		<-ctx.Done()
		for _, c := range []context.Context{ctx, derived} {
			if _, err := s.Run(c, nil, nil, []string{"slow"}); err != nil {
				t.Errorf("step after the stop: %v", err)
			}
		}
		return nil
	}))
}

func TestStepContextOwnCancel(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, "", 0)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		derived, cancel := context.WithCancel(ctx)
		step, done := StepContext(derived)
		defer done()
		cancel()
		<-step.Done() // hangs if the caller's own cancellation is lost
		return nil
	}))
}

func TestTwoChiefs(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 0)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error {
		m2 := sessiontest.Counter()
		err := newSupervisor(m2, dir, 0).Run(t.Context(), func(context.Context, session.Session) error { return nil })
		var locked *logdir.LockedError
		if !errors.As(err, &locked) {
			t.Fatalf("second chief: %v; want a LockedError", err)
		}
		host, _ := os.Hostname()
		if locked.Holder.PID != os.Getpid() || locked.Holder.Host != host || locked.Holder.Start.IsZero() {
			t.Errorf("holder = %+v; want this process", locked.Holder)
		}
		if m2.Made != 0 {
			t.Errorf("second chief made %d sessions", m2.Made)
		}
		return nil
	}))
	sessiontest.MustNoErr(t, newSupervisor(sessiontest.Counter(), dir, 0).Run(t.Context(), func(context.Context, session.Session) error { return nil }))
}

func TestNonChiefWritesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logdir")
	m := sessiontest.Counter()
	m.Set("global_step", ckptfmt.Scalar(int64(7)))
	m.Set("w", ckptfmt.Scalar(float32(1)))
	sv := newSupervisor(m, dir, 1)
	sv.NonChief = true
	sv.InitOp = Nodes("must not run")
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		if err := sv.StartStandardServices(ctx); err == nil {
			t.Error("StartStandardServices succeeds on a worker")
		}
		if err := sv.SummaryComputed(ctx, new(tfpb.Summary), 1); !errors.Is(err, ErrNoSummaryWriter) {
			t.Errorf("SummaryComputed = %v; want ErrNoSummaryWriter", err)
		}
		return sv.StepDone(ctx, m.Step())
	}))
	if _, err := os.Stat(dir); err == nil {
		t.Error("a worker made the logdir")
	}
}

func TestNoLogdir(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, "", 1)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		if err := sv.SummaryComputed(ctx, new(tfpb.Summary), 1); !errors.Is(err, ErrNoSummaryWriter) {
			t.Errorf("SummaryComputed = %v; want ErrNoSummaryWriter", err)
		}
		return sv.StepDone(ctx, m.Step())
	}))
}

func TestNoSummaryWriterStillSaves(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 1)
	sv.NoSummaryWriter = true
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 1)))
	if got := sessiontest.Files(t, dir, "*.index"); len(got) != 1 {
		t.Errorf("checkpoints: %v; want one", got)
	}
	if got := sessiontest.Files(t, dir, "*tfevents*"); len(got) != 0 {
		t.Errorf("events files: %v; want none", got)
	}
}

func TestSummaryComputed(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 0)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		m.Step()
		m.Step()
		summary := summary.New(summary.Scalar("loss", 0.5))
		return errors.Join(
			sv.SummaryComputed(ctx, summary, session.NoStep),
			sv.SummaryComputed(ctx, summary, 0),
			sv.SummaryComputed(ctx, summary, 9))
	}))
	want := [][]string{{"version", "START(0)", "loss(2)", "loss(0)", "loss(9)", "STOP(0)"}}
	if diff := cmp.Diff(events(t, dir), want); diff != "" {
		t.Errorf("events (-got +want):\n%s", diff)
	}
}
