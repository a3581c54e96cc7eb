package trainerd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// CT-5: the chief makes its logdir with all parents; SP-4, CT-6: a worker makes
// none, and drops a writer that it is given.
func TestCT5AndCT6Logdir(t *testing.T) {
	for name, nonChief := range map[string]bool{"chief": false, "worker": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a", "b", "c")
			events := t.TempDir()
			w, err := tfevents.NewFileWriter(events, nil)
			sessiontest.MustNoErr(t, err)
			m := sessiontest.Counter()
			for _, v := range m.Vars {
				v.Ready = true // by the chief
			}
			sv := newSupervisor(m, dir, 1)
			sv.NonChief, sv.SummaryWriter = nonChief, w
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
				if err := sv.StartStandardServices(ctx); nonChief != (err != nil) {
					t.Errorf("StartStandardServices = %v", err)
				}
				err := sv.SummaryComputed(ctx, summary.New(summary.Scalar("x", 1)), 0)
				if nonChief != errors.Is(err, ErrNoSummaryWriter) {
					t.Errorf("SummaryComputed = %v", err)
				}
				return nil
			}))
			sessiontest.MustNoErr(t, w.Close())
			_, err = os.Stat(dir)
			if made := err == nil; made == nonChief {
				t.Errorf("logdir is there: %v", made)
			}
			if got := len(sessiontest.Files(t, events, "*")) > 0; got == nonChief {
				t.Errorf("events were written: %v", got)
			}
		})
	}
}

// CT-9: the options with their defaults, on the chief and on a worker.
func TestCT9Settings(t *testing.T) {
	m := sessiontest.Counter()
	sv := &Supervisor{NewSession: m.NewSession, Logdir: "logs", ReadyForLocalInitOp: None(), StopGrace: -1}
	s, err := sv.Settings()
	sessiontest.MustNoErr(t, err)
	if !s.IsChief || s.SaveModelEvery != 600*time.Second || s.SaveSummariesEvery != 120*time.Second || s.RecoveryWait != 30*time.Second ||
		s.StopGrace != 0 || s.GlobalStep != "global_step" || s.Saver == nil || s.SavePath != filepath.Join("logs", "model.ckpt") ||
		s.SessionManager.CheckpointDir != "logs" || s.ReadyOp.IsNone() || !s.ReadyForLocalInitOp.IsNone() {
		t.Errorf("chief: %+v", s)
	}
	sv.NonChief, sv.NoSaver = true, true
	s, err = sv.Settings()
	sessiontest.MustNoErr(t, err)
	if s.IsChief || s.SaveModelEvery != 0 || s.SaveSummariesEvery != 0 || s.SavePath != "" || s.Saver != nil || s.SessionManager.CheckpointDir != "" {
		t.Errorf("worker: %+v", s)
	}
	sv.MetaGraph = &tfpb.MetaGraphDef{CollectionDef: map[string]*tfpb.CollectionDef{
		graph.SaversKey: {Kind: &tfpb.CollectionDef_BytesList_{BytesList: &tfpb.CollectionDef_BytesList{Value: [][]byte{{0xff}}}}}}}
	sv.NoSaver = false
	if _, err := sv.Settings(); err == nil {
		t.Error("a saver that cannot be read gives no error")
	}
}

// A session manager that is given is used, with the ops that it has.
func TestUseSessionManager(t *testing.T) {
	m := sessiontest.Counter()
	m.Op("never", func(*sessiontest.Session) error { return errors.New("must not run") })
	sv := newSupervisor(m, t.TempDir(), 1)
	sv.ReadyOp, sv.InitOp = Nodes("never"), Nodes("never")
	sv.SessionManager = &SessionManager{NewSession: m.NewSession, InitOp: Nodes("init"), Saver: new(checkpoint.Saver)}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 1)))
	if m.Made != 1 {
		t.Errorf("%d sessions", m.Made)
	}
}

// SP-1: what bounds the local init op alone.
func TestLocalInitTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, "", 0)
		sv.LocalInitOp = Func(func(ctx context.Context, _ session.Session) error { <-ctx.Done(); return ctx.Err() })
		sv.LocalInitTimeout = time.Minute
		err := sv.Run(t.Context(), func(context.Context, session.Session) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run = %v; want the deadline", err)
		}
	})
}

// SV-12: a logdir that is deleted while the training runs is made again by the
// next save.
func TestSV12LogdirDeleted(t *testing.T) {
	m := sessiontest.Counter()
	dir := filepath.Join(t.TempDir(), "logs")
	sv := newSupervisor(m, dir, 100)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		sessiontest.MustNoErr(t, os.RemoveAll(dir))
		m.Step()
		_, err := sv.Save(ctx)
		return err
	}))
	if got := sessiontest.Files(t, dir, "*.index"); !cmp.Equal(got, []string{"model.ckpt-1.index"}) {
		t.Errorf("checkpoints %v", got)
	}
}

// SV-13, SV-14: a loop of the program runs on its timer, on a worker too, ends
// with the run, and after the run is not called at all.
func TestSV13UsersLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, nonChief := range []bool{false, true} {
			m := sessiontest.Counter()
			for _, v := range m.Vars {
				v.Ready = true
			}
			sv := newSupervisor(m, "", 0)
			sv.NonChief = nonChief
			calls := 0
			count := func(context.Context) error { calls++; return nil }
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error {
				sv.Loop("mine", time.Minute, count)
				time.Sleep(150 * time.Second)
				return nil
			}))
			if calls != 3 {
				t.Errorf("%d calls in 150 s; want 3", calls)
			}
			sv.Loop("late", time.Minute, count)
			sessiontest.MustNoErr(t, sv.Stop())
			synctest.Wait()
			if calls != 3 {
				t.Error("called after the run")
			}
		}
	})
}

// ST-6, ST-7: a second Stop says the same and writes nothing; summaries after
// the stop are dropped.
func TestST6SecondStop(t *testing.T) {
	boom := errors.New("boom")
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 1)
	_, err := sv.PrepareOrWaitForSession(t.Context())
	sessiontest.MustNoErr(t, err)
	sv.RequestStop(boom)
	for range 2 {
		if err := sv.Stop(); !errors.Is(err, boom) {
			t.Errorf("Stop = %v; want %v", err, boom)
		}
	}
	sv.SummaryComputed(t.Context(), summary.New(summary.Scalar("late", 1)), 5)
	if got := events(t, sv.Logdir)[0]; !cmp.Equal(got, []string{"version", "START(0)", "STOP(0)"}) {
		t.Errorf("events %v", got)
	}
}

// Inputs over two queues, one feeding the other, end cleanly; an error of the
// main loop wins although they are running.
func TestManagedTwoQueues(t *testing.T) {
	boom := errors.New("boom")
	for name, fail := range map[string]error{"end of input": nil, "main error": boom} {
		t.Run(name, func(t *testing.T) {
			m := sessiontest.Counter()
			sv := newSupervisor(m, "", 0)
			files, lines := make(chan int, 1), make(chan int, 1)
			left := 3
			source := &QueueRunner{Name: "files", Close: Func(func(context.Context, session.Session) error { close(files); return nil }),
				Enqueue: []Op{Func(func(ctx context.Context, _ session.Session) error {
					if left == 0 {
						return session.ErrOutOfRange
					}
					left--
					select {
					case files <- left:
					case <-ctx.Done():
					}
					return nil
				})}}
			shuffle := &QueueRunner{Name: "lines", Close: Func(func(context.Context, session.Session) error { close(lines); return nil }),
				Enqueue: []Op{Func(func(ctx context.Context, _ session.Session) error {
					select {
					case n, ok := <-files:
						if !ok {
							return session.ErrOutOfRange
						}
						select {
						case lines <- n:
						case <-ctx.Done():
						}
					case <-ctx.Done(): // nobody closes files any more
					}
					return nil
				})}}
			got := 0
			err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
				if err := sv.StartQueueRunners(source, shuffle); err != nil {
					return err
				}
				for range lines {
					if got++; got == 2 && fail != nil {
						return fail
					}
				}
				return session.ErrOutOfRange
			})
			if !errors.Is(err, fail) || fail == nil && (err != nil || got != 3) {
				t.Errorf("Run = %v after %d of 3", err, got)
			}
		})
	}
}

func TestStopAfterNumSteps(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []int64{4, 8} {
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 100)
		sv.Hooks = []Hook{&StopAtStep{NumSteps: 4}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 100)))
		if n, _ := session.ScalarInt(m.Get("global_step")); n != want {
			t.Errorf("ended at step %d; want %d", n, want)
		}
	}
}

func TestLogEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		noTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}
		m := sessiontest.Counter()
		sv := newSupervisor(m, "", 0)
		sv.Hooks = []Hook{&LogEvery{
			Trigger: Trigger{Steps: 3}, AtEnd: true,
			Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: noTime})),
			Attrs:  func() []slog.Attr { return []slog.Attr{slog.Float64("loss", 0.5)} },
		}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			for range 5 {
				if err := sv.StepDone(ctx, m.Step()); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			return nil
		}))
		want := "msg=training step=1 loss=0.5\nmsg=training step=4 steps_per_second=1 loss=0.5\nmsg=training step=5 loss=0.5\n"
		if diff := cmp.Diff(out.String(), want); diff != "" {
			t.Errorf("log (-got +want):\n%s", diff)
		}
	})
}

// The manifest of a checkpoint says what it is and what came before it.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 2)
	sv.Saver = &checkpoint.Saver{ConfigHash: "abc"}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		sv.ReportMetric("auc", 0.75)
		return stepsTo(m, sv, 4)(ctx, s)
	}))
	got, err := manifest.Read(filepath.Join(dir, "model.ckpt-4"))
	sessiontest.MustNoErr(t, err)
	if got.Step != 4 || got.Parent != "model.ckpt-2" || got.ConfigHash != "abc" || got.Metrics["auc"] != 0.75 || got.WallTime.IsZero() {
		t.Errorf("manifest %+v", got)
	}
	for name, err := range manifest.Verify(t.Context(), filepath.Join(dir, "model.ckpt-4")) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A checkpoint that was asked for by its name and is of another model gives
// advice that fits.
func TestMismatchOfNamedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	prefix := saveWith(t, new(checkpoint.Saver), sessiontest.SessionOf(map[string]*ckptfmt.Tensor{"other": sessiontest.Vector[float32](1)}), filepath.Join(dir, "m"), 1)
	m := sessiontest.Counter()
	mgr := &SessionManager{NewSession: m.NewSession, Saver: new(checkpoint.Saver), CheckpointPath: prefix}
	_, _, err := mgr.PrepareSession(t.Context())
	var mismatch *checkpoint.MismatchError
	if !errors.As(err, &mismatch) || !mismatch.Named || strings.Contains(err.Error(), "logdir") {
		t.Errorf("PrepareSession = %v", err)
	}
}
