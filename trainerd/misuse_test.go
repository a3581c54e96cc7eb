package trainerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/report"
	"github.com/trainerd/trainerd/trainerd/session"
)

// What could never work is said before the first step, and nothing is left
// open.
func TestRefusedAtTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(sv *Supervisor, m *sessiontest.Model)
		want string
	}{
		"no session": {func(sv *Supervisor, _ *sessiontest.Model) {
			sv.NewSession = func(context.Context) (session.Session, error) { return nil, nil }
		}, "NewSession gave neither a session nor an error"},
		"service":   {func(sv *Supervisor, _ *sessiontest.Model) { sv.Services = []coord.Service{coord.Service(nil)} }, "Supervisor.Services[0] is nil"},
		"hook":      {func(sv *Supervisor, _ *sessiontest.Model) { sv.Hooks = []Hook{hook.Funcs{}, nil} }, "Supervisor.Hooks[1] is nil"},
		"listener":  {func(sv *Supervisor, _ *sessiontest.Model) { sv.Listeners = []CheckpointListener{nil} }, "Supervisor.Listeners[0] is nil"},
		"retention": {func(sv *Supervisor, _ *sessiontest.Model) { sv.Saver.Retention = []retention.Policy{nil} }, "Retention[0] is nil"},
		"risk":      {func(sv *Supervisor, _ *sessiontest.Model) { sv.SaveBudget.MaxRisk = -1 }, "SaveBudget.MaxRisk"},
		"variable":  {func(sv *Supervisor, _ *sessiontest.Model) { sv.Saver.Variables = checkpoint.VariableList("none") }, "no variable none"},
		"two keys":  {func(sv *Supervisor, _ *sessiontest.Model) { sv.Saver.Variables = map[string]string{"a": "w", "b": "w"} }, "two keys"},
		"name":      {func(sv *Supervisor, _ *sessiontest.Model) { sv.Saver.LatestFilename = "a/b" }, "must not contain path components"},
		"collision": {func(sv *Supervisor, _ *sessiontest.Model) {
			sv.CheckpointBasename, sv.GlobalStep = checkpoint.DefaultLatestFilename, None()
		}, "collides"},
		"state is a folder": {func(sv *Supervisor, _ *sessiontest.Model) {
			sv.Saver.LatestFilename = "state"
			sessiontest.MustNoErr(t, os.Mkdir(filepath.Join(sv.Logdir, "state"), 0o777))
		}, "it is a folder"},
		"type": {func(sv *Supervisor, m *sessiontest.Model) {
			m.Set("wide", &ckptfmt.Tensor{DType: tfpb.DataType_DT_UINT64, Data: make([]byte, 8)})
			sv.Saver.Format = checkpoint.FormatV1
		}, "V1 checkpoints do not hold"},
		"init panics": {func(sv *Supervisor, _ *sessiontest.Model) {
			sv.InitFunc = func(context.Context, session.Session) error { panic("boom") }
		}, "preparation panicked: boom"},
		"last and number": {func(sv *Supervisor, _ *sessiontest.Model) { sv.Hooks = []Hook{&StopAtStep{LastStep: 1, NumSteps: 1}} }, "StopAtStep"},
		"no last step":    {func(sv *Supervisor, _ *sessiontest.Model) { sv.Hooks = []Hook{&StopAtStep{}} }, "StopAtStep"},
		"no loss":         {func(sv *Supervisor, _ *sessiontest.Model) { sv.Hooks = []Hook{&NaNGuard{}} }, "NaNGuard"},
	} {
		t.Run(name, func(t *testing.T) {
			m := sessiontest.Counter()
			sv := newSupervisor(m, t.TempDir(), 1)
			sv.Saver = new(checkpoint.Saver)
			tt.set(sv, m)
			err := sv.Run(t.Context(), func(context.Context, session.Session) error { t.Error("train was called"); return nil })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run = %v; want an error with %q", err, tt.want)
			}
			if m.Open != 0 {
				t.Errorf("%d sessions left open", m.Open)
			}
			sessiontest.MustNoErr(t, newSupervisor(sessiontest.Counter(), sv.Logdir, 1).Run(t.Context(), func(context.Context, session.Session) error { return nil }))
		})
	}
	m := sessiontest.Counter()
	if err := newSupervisor(m, "", 0).Run(t.Context(), nil); err == nil || m.Made != 0 {
		t.Errorf("Run without a training = %v, %d sessions made", err, m.Made)
	}
}

// A Supervisor has one run at a time.
func TestSecondRunAtOnce(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, "", 0)
	preparing, goOn := make(chan struct{}), make(chan struct{})
	sv.InitFunc = func(context.Context, session.Session) error { close(preparing); <-goOn; return nil }
	first := make(chan error, 1)
	var trained atomic.Bool
	go func() {
		first <- sv.Run(t.Context(), func(context.Context, session.Session) error { trained.Store(true); return nil })
	}()
	<-preparing
	err := sv.Run(t.Context(), func(context.Context, session.Session) error { t.Error("the second train was called"); return nil })
	if err == nil || !strings.Contains(err.Error(), "in a run") {
		t.Errorf("the second Run = %v; want that there is one", err)
	}
	close(goOn)
	if err := <-first; err != nil || !trained.Load() {
		t.Errorf("the first Run = %v, trained %v; want that it continues", err, trained.Load())
	}
	sv.InitFunc = nil
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error { return nil }))
}

// After the run the logdir may be another's.
func TestNothingIsSavedAfterTheRun(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 1)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 2)))
	before := sessiontest.Files(t, sv.Logdir, "*")
	n := m.Step()
	if err := sv.StepDone(t.Context(), n); err == nil {
		t.Error("StepDone after the run succeeds")
	}
	if saved, err := sv.Save(t.Context()); err == nil {
		t.Errorf("Save after the run = %+v", saved)
	}
	if after := sessiontest.Files(t, sv.Logdir, "*"); len(after) != len(before) {
		t.Errorf("files %v; want %v", after, before)
	}
}

// A training that ends its goroutine, as testing.T.FailNow does, has failed.
func TestGoexitOfTraining(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 5)
	left := make(chan struct{})
	go func() {
		defer close(left)
		sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			if err := stepsTo(m, sv, 7)(ctx, s); err != nil {
				t.Error(err)
			}
			runtime.Goexit()
			return nil
		})
	}()
	<-left
	if got := sessiontest.Files(t, sv.Logdir, "*.index"); len(got) != 1 || got[0] != "model.ckpt-5.index" {
		t.Errorf("checkpoints %v; want that of step 5 alone", got)
	}
	if rep := sv.Report(); rep.Outcome != report.Failed || !strings.Contains(rep.Error, "Goexit") {
		t.Errorf("outcome %s, %q", rep.Outcome, rep.Error)
	}
}

// A stop ends the waiting for a session, too.
func TestStopWhileWaiting(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		stop func(sv *Supervisor)
		want error
	}{
		"by request": {func(sv *Supervisor) { sv.RequestStop(nil) }, nil},
		"by failure": {func(sv *Supervisor) { sv.RequestStop(boom) }, boom},
		"by Stop":    {func(sv *Supervisor) { sv.Stop() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv := &Supervisor{NonChief: true, NewSession: func(context.Context) (session.Session, error) { return nil, session.ErrUnavailable }}
				time.AfterFunc(10*time.Second, func() { tt.stop(sv) })
				begun := time.Now()
				err := sv.Run(t.Context(), func(context.Context, session.Session) error { t.Error("train was called"); return nil })
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Errorf("Run = %v; want %v", err, tt.want)
				}
				if took := time.Since(begun); took != 10*time.Second {
					t.Errorf("Run returned after %v; want 10s", took)
				}
			})
		})
	}
}

// A stop ends the pause before a session that was lost is replaced. Of a chief, what it had
// not saved is lost.
func TestStopBeforeRestart(t *testing.T) {
	for worker, want := range map[bool]error{false: session.ErrAborted, true: nil} {
		synctest.Test(t, func(t *testing.T) {
			m := sessiontest.Counter()
			m.Ops["init"](&sessiontest.Session{Model: m}, nil) // as the chief does
			sv := newSupervisor(m, "", 0)
			sv.MaxRestarts, sv.NonChief = -1, worker
			time.AfterFunc(firstRestart/2, func() { sv.RequestStop(nil) })
			begun, runs := time.Now(), 0
			err := sv.Run(t.Context(), func(context.Context, session.Session) error { runs++; return session.ErrAborted })
			if !errors.Is(err, want) || runs != 1 || time.Since(begun) != firstRestart/2 {
				t.Errorf("worker %t: Run = %v after %v and %d sessions; want %v at the stop, after one", worker, err, time.Since(begun), runs, want)
			}
		})
	}
}

// A stop that is asked for while a lost session is being stopped holds for those
// that would have followed.
func TestStopWhileLostSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv := newSupervisor(sessiontest.Counter(), "", 0)
		sv.MaxRestarts = 3
		runs := 0
		err := sv.Run(t.Context(), func(context.Context, session.Session) error {
			runs++
			sv.Coordinator().Go("slow to end", func(ctx context.Context) error {
				<-ctx.Done()
				sv.RequestStop(nil)
				return nil
			})
			return session.ErrAborted
		})
		if !errors.Is(err, session.ErrAborted) || runs != 1 {
			t.Errorf("Run = %v after %d sessions; want ErrAborted after one", err, runs)
		}
		runs = 0
		if err := sv.Run(t.Context(), func(context.Context, session.Session) error { runs++; return nil }); err != nil || runs != 1 {
			t.Errorf("the next Run = %v after %d sessions; want nil after one", err, runs)
		}
	})
}

// A policy that panics ends the run, and keeps nobody from finding out.
func TestRetentionPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 1)
		sv.Saver = &checkpoint.Saver{Retention: []retention.Policy{panickingPolicy{}}}
		begun := time.Now()
		err := sv.Run(t.Context(), stepsTo(m, sv, 2))
		var panicked *coord.PanicError
		var hangs *coord.StopError
		if !errors.As(err, &panicked) || errors.As(err, &hangs) || time.Since(begun) != 0 {
			t.Errorf("Run = %v after %v; want a PanicError at once", err, time.Since(begun))
		}
	})
}

type panickingPolicy struct{}

func (panickingPolicy) Keep([]retention.Checkpoint) []string { panic("policy") }

func TestStartQueueRunnersErrors(t *testing.T) {
	sv := newSupervisor(sessiontest.Counter(), "", 0)
	for _, q := range []*QueueRunner{nil, {}, {Name: "q"}} {
		err := sv.Run(t.Context(), func(context.Context, session.Session) error { return sv.StartQueueRunners(q) })
		if err == nil || !strings.Contains(err.Error(), "queue runner") {
			t.Errorf("%+v: Run = %v; want an error", q, err)
		}
	}
}
