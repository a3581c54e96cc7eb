package trainerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// minuteSteps trains one step a minute, the first after a minute and a half so
// that no step ends when a service ticks.
func minuteSteps(m *sessiontest.Model, n int) func(context.Context, session.Session) error {
	return func(ctx context.Context, _ session.Session) error {
		pause := 90 * time.Second
		for range n {
			if !coord.Sleep(ctx, pause) {
				return nil
			}
			m.Step()
			pause = time.Minute
		}
		return nil
	}
}

func lossSummary(context.Context, session.Session) (*tfpb.Summary, error) {
	return summary.New(summary.Scalar("loss", 1)), nil
}

// With the default intervals: a summary at once and every two minutes, rates
// from the second tick on, a checkpoint at once and every ten minutes, and one
// at the end, which TensorFlow does not write.
func TestServicesTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := sessiontest.Counter()
		sv := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: dir, SummaryOp: SummaryFunc(lossSummary)}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), minuteSteps(m, 13)))
		byTag := make(map[string][]string)
		for _, e := range events(t, dir)[0] {
			tag, _, _ := strings.Cut(e, "(")
			byTag[tag] = append(byTag[tag], e)
		}
		want := map[string][]string{
			"version":         {"version"},
			"START":           {"START(0)"},
			"loss":            {"loss(0)", "loss(1)", "loss(3)", "loss(5)", "loss(7)", "loss(9)", "loss(11)"},
			"global_step/sec": {"global_step/sec(1)", "global_step/sec(3)", "global_step/sec(5)", "global_step/sec(7)", "global_step/sec(9)", "global_step/sec(11)"},
			"CHECKPOINT":      {"CHECKPOINT(0)", "CHECKPOINT(9)", "CHECKPOINT(13)"},
			"STOP":            {"STOP(0)"},
		}
		if diff := cmp.Diff(byTag, want); diff != "" {
			t.Errorf("events (-got +want):\n%s", diff)
		}
	})
}

func TestStepCounterRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := sessiontest.Counter()
		sv := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: dir, SaveModelEvery: -1, SaveSummariesEvery: time.Second}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			coord.Sleep(ctx, 150*time.Millisecond)
			for range 45 { // a step each 100 ms, off the tick
				m.Step()
				coord.Sleep(ctx, 100*time.Millisecond)
			}
			return nil
		}))
		var rates []float32
		for _, e := range sessiontest.Events(t, dir) {
			for _, v := range e.GetSummary().GetValue() {
				rates = append(rates, v.GetSimpleValue())
			}
		}
		if len(rates) != 4 {
			t.Fatalf("%d rates %v; want 4", len(rates), rates)
		}
		for _, r := range rates {
			if r < 8.99 || r > 10.01 {
				t.Errorf("rates %v; want about 10 each", rates)
			}
		}
	})
}

// Which service runs under which options.
func TestSV3WhichServicesRun(t *testing.T) {
	withSummary := SummaryFunc(lossSummary)
	tests := []struct {
		name                         string
		change                       func(*Supervisor)
		summary, counter, checkpoint bool
	}{
		{"defaults", func(*Supervisor) {}, true, true, true},
		{"no summary interval", func(sv *Supervisor) { sv.SaveSummariesEvery = -1 }, false, false, true},
		{"no writer", func(sv *Supervisor) { sv.NoSummaryWriter = true }, false, false, true},
		{"no summary op", func(sv *Supervisor) { sv.SummaryOp = None() }, false, true, true},
		{"no step", func(sv *Supervisor) { sv.GlobalStep = None() }, true, false, true},
		{"no model interval", func(sv *Supervisor) { sv.SaveModelEvery = -1 }, true, true, false},
		{"no saver", func(sv *Supervisor) { sv.NoSaver = true }, true, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				m := sessiontest.Counter()
				sv := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: dir, SummaryOp: withSummary}
				tt.change(sv)
				sessiontest.MustNoErr(t, sv.Run(t.Context(), minuteSteps(m, 3)))
				var all string
				for _, file := range events(t, dir) {
					all += strings.Join(file, " ")
				}
				got := [3]bool{strings.Contains(all, "loss("), strings.Contains(all, "/sec("), len(sessiontest.Files(t, dir, "*.index")) > 0}
				if want := [3]bool{tt.summary, tt.counter, tt.checkpoint}; got != want {
					t.Errorf("summary, counter, checkpoint = %v; want %v", got, want)
				}
			})
		})
	}
}

// Without a step every save has the same name, and there is no event for it.
func TestSV8NoGlobalStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := sessiontest.NewModel(map[string]*ckptfmt.Tensor{"w": ckptfmt.Scalar(float32(3))})
		sv := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: dir, SummaryOp: SummaryFunc(lossSummary)}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error { coord.Sleep(ctx, 11*time.Minute); return nil }))
		if diff := cmp.Diff(sessiontest.Files(t, dir, "*.index"), []string{"model.ckpt.index"}); diff != "" {
			t.Errorf("checkpoints (-got +want):\n%s", diff)
		}
		for _, e := range events(t, dir)[0] {
			if e != "version" && e != "loss(0)" && e != "STOP(0)" {
				t.Errorf("event %s without a global step", e)
			}
		}
		m2 := sessiontest.NewModel(map[string]*ckptfmt.Tensor{"w": ckptfmt.Scalar(float32(0))})
		sv.NewSession, sv.InitOp = m2.NewSession, None()
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error { return nil }))
		if diff := cmp.Diff(m2.Get("w").Data, ckptfmt.Scalar(float32(3)).Data); diff != "" {
			t.Errorf("restored w (-got +want):\n%s", diff)
		}
	})
}

// A save that fails is tried again, the training continues, and the checkpoint
// before it stays the current one.
func TestSaveFailureIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		log, lines := sessiontest.NewLog()
		m := sessiontest.Counter()
		sv := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: dir, Logger: log, SaveModelEvery: time.Minute}
		errDisk := errors.New("no space left")
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			coord.Sleep(ctx, 30*time.Second)
			m.Step()
			setFailure(m, errDisk)
			coord.Sleep(ctx, 32*time.Second) // the save at 60 s fails, and the one at 61 s
			setFailure(m, nil)
			coord.Sleep(ctx, 10*time.Second+pointsGrace) // for points that nobody reports
			if saved, ok := sv.LastSave(); !ok || saved.Step != 1 {
				t.Errorf("last save %+v; want step 1", saved)
			}
			return nil
		}))
		sessiontest.WantLog(t, lines, "saved step=0 ", "no space left", "saved step=1 ")
	})
}

func setFailure(m *sessiontest.Model, err error) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.FailSnapshot = err
}

func TestSaveFailureBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := sessiontest.Counter()
		sv := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: dir, SaveSummariesEvery: -1, MaxSaveFailures: 3}
		errDisk := errors.New("no space left")
		err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			coord.Sleep(ctx, time.Second)
			m.Step()
			setFailure(m, errDisk)
			<-ctx.Done() // hangs if the budget does not end the run
			setFailure(m, nil)
			return nil
		})
		var failed *SaveFailedError
		if !errors.As(err, &failed) || failed.Failures != 3 || !errors.Is(err, errDisk) {
			t.Errorf("Run = %v; want a SaveFailedError after 3 failures", err)
		}
		if diff := cmp.Diff(sessiontest.Files(t, dir, "*.index"), []string{"model.ckpt-0.index", "model.ckpt-1.index"}); diff != "" {
			t.Errorf("checkpoints (-got +want):\n%s", diff)
		}
	})
}

func TestFinalSaveFailureIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 10)
		errDisk := errors.New("no space left")
		err := sv.Run(t.Context(), func(context.Context, session.Session) error {
			m.Step()
			setFailure(m, errDisk)
			return nil
		})
		if !errors.Is(err, errDisk) {
			t.Errorf("Run = %v; want %v", err, errDisk)
		}
	})
}

func TestSummaryServiceWithPlaceholder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines := sessiontest.NewLog()
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 0)
		sv.Logger, sv.SaveSummariesEvery = log, time.Second
		sv.MetaGraph = &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{
			{Name: "x", Op: "Placeholder"},
			{Name: "y", Op: "Square", Input: []string{"x"}},
			{Name: "summary", Op: "ScalarSummary", Input: []string{"tag", "y:0", "^init"}},
		}}}
		sv.SummaryOp = Nodes("summary:0")
		sessiontest.MustNoErr(t, sv.Run(t.Context(), minuteSteps(m, 1)))
		sessiontest.WantLog(t, lines, "no summary service", "placeholder=x")
	})
}

func TestSummaryServiceFromNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		m := sessiontest.Counter()
		m.Ops["summary"] = func(*sessiontest.Session, map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
			out, err := SummaryFunc(lossSummary).run(t.Context(), nil, nil)
			return out[0], err
		}
		sv := newSupervisor(m, dir, 0)
		sv.SaveSummariesEvery = time.Minute
		sv.SummaryOp = Nodes("summary:0")
		sessiontest.MustNoErr(t, sv.Run(t.Context(), minuteSteps(m, 2)))
		want := "loss(0) loss(1) global_step/sec(1)"
		if all := strings.Join(events(t, dir)[0], " "); !strings.Contains(all, "loss(0)") || !strings.Contains(all, "loss(1)") {
			t.Errorf("events %s; want among them %s", all, want)
		}
	})
}

// A service's error ends the run, and the others notice.
func TestSV10ServiceErrorStopsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 0)
		errSummary := errors.New("bad summary")
		sv.SaveSummariesEvery = time.Minute
		sv.SummaryOp = SummaryFunc(func(context.Context, session.Session) (*tfpb.Summary, error) { return nil, errSummary })
		stopped := false
		err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			sv.Coordinator().Go("other", func(ctx context.Context) error {
				<-ctx.Done()
				stopped = true
				return nil
			})
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, errSummary) || !stopped {
			t.Errorf("Run = %v, other service stopped: %v; want %v, true", err, stopped, errSummary)
		}
	})
}

// Only one save is under way at a time: the second waits.
func TestStepDoneOneSaveAtATime(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 1)
	var steps []int64
	sv.OnSave = func(s SavedCheckpoint) { steps = append(steps, s.Step) } // a race if two saves overlapped
	sv.Saver = &checkpoint.Saver{MaxToKeep: -1}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 8)))
	if diff := cmp.Diff(steps, []int64{1, 2, 3, 4, 5, 6, 7, 8}); diff != "" {
		t.Errorf("saved steps (-got +want):\n%s", diff)
	}
}

func TestStepDoneSeveralStepsAtOnce(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 10)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		for range 5 {
			var n int64
			for range 7 {
				n = m.Step()
			}
			if err := sv.StepDone(ctx, n); err != nil {
				return err
			}
		}
		return nil
	}))
	want := []string{"model.ckpt-14.index", "model.ckpt-21.index", "model.ckpt-35.index"}
	if diff := cmp.Diff(sessiontest.Files(t, dir, "*.index"), want); diff != "" {
		t.Errorf("checkpoints (-got +want):\n%s", diff)
	}
}

// While a checkpoint is written the training continues, and the checkpoint has
// the values of its step.
func TestCheckpointIsConsistentCut(t *testing.T) {
	dir := t.TempDir()
	m := sessiontest.Counter()
	sv := newSupervisor(m, dir, 3)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 10)))
	for _, step := range []int64{3, 6, 9, 10} {
		r, err := ckptfmt.OpenBundle(filepath.Join(dir, fmt.Sprint("model.ckpt-", step)), nil)
		sessiontest.MustNoErr(t, err)
		defer r.Close()
		for name, want := range map[string]*ckptfmt.Tensor{"global_step": ckptfmt.Scalar(step), "w": ckptfmt.Scalar(float32(step) / 2)} {
			got, err := r.Lookup(name)
			sessiontest.MustNoErr(t, err)
			if diff := cmp.Diff(got.Data, want.Data); diff != "" {
				t.Errorf("%s of step %d (-got +want):\n%s", name, step, diff)
			}
		}
	}
}

// slowFS takes its time to make a name durable.
type slowFS struct{ ckptfmt.FS }

func (f slowFS) SyncDir(name string) error {
	time.Sleep(time.Minute)
	return f.FS.SyncDir(name)
}

// A save that takes longer than the grace period is waited for.
func TestGraceIsNotForSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 1)
		sv.StopGrace = time.Second
		sv.SaveGrace = -1
		sv.Saver = &checkpoint.Saver{FS: slowFS{atomicfile.OrOS(nil)}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 1)))
		if got := sessiontest.Files(t, sv.Logdir, "*.index"); len(got) != 1 {
			t.Errorf("checkpoints %v; want one", got)
		}
	})
}

// The training continues while its checkpoint is written.
func TestSaveInBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 2)
		sv.Saver = &checkpoint.Saver{FS: slowFS{atomicfile.OrOS(nil)}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			start := time.Now()
			if err := stepsTo(m, sv, 3)(ctx, s); err != nil {
				return err
			}
			if waited := time.Since(start); waited != 0 {
				t.Errorf("three steps took %v; want no wait for the disk", waited)
			}
			if _, saved := sv.LastSave(); saved {
				t.Error("the checkpoint is announced before it is durable")
			}
			err := stepsTo(m, sv, 4)(ctx, s)
			if _, saved := sv.LastSave(); !saved || time.Since(start) == 0 {
				t.Error("the second save did not wait for the first")
			}
			return err
		}))
	})
}

func TestPrepareDuringRun(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, "", 0)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		if _, err := sv.PrepareOrWaitForSession(ctx); err == nil {
			t.Error("a second session is prepared during a run")
		}
		if sv.ShouldStop() {
			t.Error("the refused preparation stops the run")
		}
		return nil
	}))
}

// The interval of checkpoints can change, to none and back; the next one comes
// after the new interval.
func TestSetSaveModelEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: t.TempDir(), SaveModelEvery: 5 * time.Minute, NoSummaryWriter: true}
		if err := sv.SetSaveModelEvery(time.Minute); err == nil {
			t.Error("the interval changes without a run")
		}
		var at []string
		begun := time.Now()
		sv.OnSave = func(SavedCheckpoint) { at = append(at, time.Since(begun).Round(time.Minute).String()) }
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			for minute := 1; minute <= 40 && ctx.Err() == nil; minute++ {
				m.Step()
				coord.Sleep(ctx, time.Minute)
				switch minute {
				case 12:
					sessiontest.MustNoErr(t, sv.SetSaveModelEvery(2*time.Minute))
				case 17:
					sessiontest.MustNoErr(t, sv.SetSaveModelEvery(0))
				case 30:
					sessiontest.MustNoErr(t, sv.SetSaveModelEvery(4*time.Minute))
				}
			}
			return nil
		}))
		want := []string{"0s", "5m0s", "10m0s", "14m0s", "16m0s", "34m0s", "38m0s", "40m0s"}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Errorf("saves (-want +got):\n%s", diff)
		}
		off := &Supervisor{NewSession: m.NewSession, InitOp: Nodes("init"), Logdir: t.TempDir(), SaveModelEvery: -1}
		sessiontest.MustNoErr(t, off.Run(t.Context(), func(context.Context, session.Session) error {
			if err := off.SetSaveModelEvery(time.Minute); err == nil {
				t.Error("the interval changes where there was none")
			}
			return nil
		}))
	})
}
