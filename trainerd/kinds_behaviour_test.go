package trainerd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// trained runs a process that makes so many steps, and returns the checkpoint
// that it ends with.
func trained(t *testing.T, k *kind, dir string, steps int) string {
	t.Helper()
	p := k.process(t)
	sv := p.supervisor(dir)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		p.train(ctx, s, steps)
		return nil
	}))
	saved, ok := sv.LastSave()
	if !ok {
		t.Fatal("nothing is saved")
	}
	return saved.Prefix
}

// A model is initialised, trained, saved at the end, and restored in another
// process, which continues from there.
func TestKindsResume(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		dir := t.TempDir()
		wantSaved(t, trained(t, k, dir, 3), 1.5)
		p := k.process(t)
		sv := p.supervisor(dir)
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			if w := p.value(ctx, s, "w"); w != 1.5 || sv.Prepared().Restored != filepath.Join(dir, "model.ckpt-3") {
				t.Errorf("begins with w = %v from %q", w, sv.Prepared().Restored)
			}
			p.train(ctx, s, 2)
			return nil
		}))
		wantSaved(t, filepath.Join(dir, "model.ckpt-5"), 2.5)
	})
}

// What a process that has restored a model and changed nothing saves: nothing,
// where the session can tell.
func TestKindsSaveNothingNew(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		dir := t.TempDir()
		trained(t, k, dir, 3)
		p, saves := k.process(t), 0
		sv := p.supervisor(dir)
		sv.OnSave = func(trainerd.SavedCheckpoint) { saves++ }
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			p.value(ctx, s, "w")
			saved, err := sv.Save(ctx)
			if saved.Prefix != filepath.Join(dir, "model.ckpt-3") || saved.Step != 3 {
				t.Errorf("Save = %+v; want the checkpoint of step 3", saved)
			}
			return err
		}))
		if k.knows != (saves == 0) {
			t.Errorf("%d saves; the session knows: %v", saves, k.knows)
		}
		wantSaved(t, filepath.Join(dir, "model.ckpt-3"), 1.5)
	})
}

// A global step that is not raised loses nothing.
func TestKindsStaleStep(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		p, dir := k.process(t), t.TempDir()
		sv := p.supervisor(dir)
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			p.trainStale(ctx, s, 2)
			saved, err := sv.Save(ctx)
			sessiontest.MustNoErr(t, err)
			wantSaved(t, saved.Prefix, 1)
			p.trainStale(ctx, s, 2)
			return nil
		}))
		wantSaved(t, filepath.Join(dir, "model.ckpt-0"), 2)
	})
}

// A step that comes again is saved again.
func TestKindsStepSetBack(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		p, dir := k.process(t), t.TempDir()
		sv := p.supervisor(dir)
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			p.train(ctx, s, 3)
			_, err := sv.Save(ctx)
			p.setStep(ctx, s, 0)
			p.train(ctx, s, 3)
			return err
		}))
		wantSaved(t, filepath.Join(dir, "model.ckpt-3"), 3)
	})
}

// Summaries and the step counter of a training, also after its step was set
// back. A summary is of the step that it says.
func TestKindsSummaries(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		p, dir := k.process(t), t.TempDir()
		sv := p.supervisor(dir)
		sv.SaveSummariesEvery = 5 * time.Millisecond
		rate := "global_step/sec"
		if p.vars != nil {
			rate = "my_step/sec"
		}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			p.train(ctx, s, 100)
			awaitPoint(t, sv, "w", func(step int64, w float32) bool { return step == 100 && w == 50 })
			made := int64(100)
			// The first look of the counter, which gives no point, may come late.
			for !hasPoint(t, sv, rate, func(int64, float32) bool { return true }) {
				p.train(ctx, s, 1)
				made++
				awaitPoint(t, sv, "w", func(step int64, _ float32) bool { return step == made })
			}
			p.setStep(ctx, s, 10)
			awaitPoint(t, sv, "w", func(step int64, w float32) bool { return step == 10 && w == float32(made)/2 })
			p.train(ctx, s, 1)
			awaitPoint(t, sv, "w", func(step int64, w float32) bool { return step == 11 && w == float32(made+1)/2 })
			// A counter that has to compare steps needs two looks after the step was set back.
			for next := int64(12); !hasPoint(t, sv, rate, func(step int64, _ float32) bool { return step > 10 && step < 100 }); next++ {
				p.train(ctx, s, 1)
				awaitPoint(t, sv, "w", func(step int64, _ float32) bool { return step == next })
			}
			return nil
		}))
	})
}

// awaitPoint waits until there is a point of a tag as it is wanted.
func awaitPoint(t *testing.T, sv *trainerd.Supervisor, tag string, wanted func(step int64, value float32) bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !hasPoint(t, sv, tag, wanted); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no such point of %s in %v", tag, pointsOf(t, sv.Logdir))
		}
	}
}

// hasPoint reports whether there is a point of a tag as it is wanted.
func hasPoint(t *testing.T, sv *trainerd.Supervisor, tag string, wanted func(step int64, value float32) bool) bool {
	t.Helper()
	sessiontest.MustNoErr(t, sv.Writer().Flush(t.Context()))
	for e := range eventsOf(t, sv.Logdir) {
		for _, v := range e.GetSummary().GetValue() {
			if v.GetTag() == tag && wanted(e.GetStep(), v.GetSimpleValue()) {
				return true
			}
		}
	}
	return false
}

// pointsOf describes all points of a logdir.
func pointsOf(t *testing.T, dir string) (seen []string) {
	t.Helper()
	for e := range eventsOf(t, dir) {
		for _, v := range e.GetSummary().GetValue() {
			seen = append(seen, fmt.Sprintf("%s(%d)=%v", v.GetTag(), e.GetStep(), v.GetSimpleValue()))
		}
	}
	return seen
}

// eventsOf yields the events in a logdir up to what is being written.
func eventsOf(t *testing.T, dir string) iter.Seq[*tfpb.Event] {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "events.*"))
	sessiontest.MustNoErr(t, err)
	return func(yield func(*tfpb.Event) bool) {
		for _, name := range names {
			b, err := os.ReadFile(name)
			sessiontest.MustNoErr(t, err)
			for e, err := range tfevents.NewReader(bytes.NewReader(b)).Events() {
				if err != nil {
					break
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}

// A stop saves what was trained.
func TestKindsStop(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
			"cancelled": context.WithCancel,
			"past deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 300*time.Millisecond)
			},
		} {
			p, dir := k.process(t), t.TempDir()
			sv := p.supervisor(dir)
			caller, cancel := end(t.Context())
			trained := false
			sessiontest.MustNoErr(t, sv.Run(caller, func(ctx context.Context, s session.Session) error {
				p.train(ctx, s, 2)
				trained = true
				if name == "cancelled" {
					cancel()
				}
				<-caller.Done()
				return caller.Err()
			}))
			cancel()
			if trained { // a machine that is busy may not have come to it
				wantSaved(t, filepath.Join(dir, "model.ckpt-2"), 1)
			}
		}
	})
}

// A worker waits for a model that nobody has initialised, without a ready op in
// its graph; a variable in no collection makes nobody wait.
func TestKindsReadyWait(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		var notReady *trainerd.NotReadyError
		for wait := 250 * time.Millisecond; ; wait *= 2 {
			p := k.process(t)
			sv := p.supervisor("")
			sv.NonChief, sv.MaxWait, sv.RecoveryWait = true, wait, 10*time.Millisecond
			err := sv.Run(t.Context(), func(context.Context, session.Session) error { return nil })
			switch {
			case p.vars != nil:
				sessiontest.MustNoErr(t, err) // they always have values
				return
			case errors.Is(err, session.ErrDeadlineExceeded) && errors.As(err, &notReady):
				return
			case wait > time.Minute || !errors.Is(err, session.ErrDeadlineExceeded):
				t.Fatalf("Run = %v; want that it has waited for the variables", err)
			}
			// A busy machine has not come to ask for them.
		}
	})
}

// Local variables are set up in every process, after a restore too.
func TestKindsLocalInit(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		dir := t.TempDir()
		for range 2 {
			p := k.process(t)
			if p.vars != nil {
				t.Skip("there are none")
			}
			sessiontest.MustNoErr(t, p.supervisor(dir).Run(t.Context(), func(ctx context.Context, s session.Session) error {
				if hits := p.value(ctx, s, "hits"); hits != 7 {
					t.Errorf("the local variable is %v; want 7", hits)
				}
				p.train(ctx, s, 1)
				return nil
			}))
		}
	})
}

// A new model begins with values of another one's checkpoint.
func TestKindsWarmStart(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		warm := &checkpoint.WarmStart{Checkpoint: trained(t, k, t.TempDir(), 3), Names: map[string]string{"w": "w"}, Only: true}
		p, dir := k.process(t), t.TempDir()
		sv := p.supervisor(dir)
		sv.InitFunc = func(ctx context.Context, s session.Session) error {
			_, err := warm.Apply(ctx, s)
			return err
		}
		err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			p.train(ctx, s, 1)
			return nil
		})
		if !k.takes {
			if err == nil {
				t.Error("a session that takes no values is warm-started")
			}
			return
		}
		sessiontest.MustNoErr(t, err)
		wantSaved(t, filepath.Join(dir, "model.ckpt-1"), 2)
	})
}

// A worker that begins late, where the model of others has come to, counts its steps
// from there.
func TestKindsWorkerNumSteps(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		if !k.shared {
			t.Skip("its variables are its own")
		}
		chief := k.process(t)
		sessiontest.MustNoErr(t, chief.supervisor(t.TempDir()).Run(t.Context(), func(ctx context.Context, s session.Session) error {
			chief.train(ctx, s, 5)
			worker := chief.supervisor("")
			worker.NonChief, worker.Hooks = true, []trainerd.Hook{&trainerd.StopAtStep{NumSteps: 3}}
			sessiontest.MustNoErr(t, worker.Run(t.Context(), func(ctx context.Context, s session.Session) error {
				return worker.UntilStop(func() error { return trainerd.RunOps(ctx, s, "train") })
			}))
			if w := chief.value(ctx, s, "w"); w != 4 {
				t.Errorf("w = %v after the worker's steps; want 4: 3 after the chief's 5", w)
			}
			return nil
		}))
	})
}

// Summaries by steps, too, continue at once after the step was set back.
func TestKindsSummarySaverSetBack(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		p, dir := k.process(t), t.TempDir()
		if p.vars != nil {
			t.Skip("it makes no calls of the session")
		}
		sv := p.supervisor(dir)
		sv.Hooks = []trainerd.Hook{&hook.SummarySaver{Trigger: trainerd.Trigger{Steps: 5}}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			p.train(ctx, s, 12)
			p.setStep(ctx, s, 0)
			p.train(ctx, s, 7)
			return nil
		}))
		var steps []int64
		for e := range eventsOf(t, dir) {
			if len(e.GetSummary().GetValue()) > 0 {
				steps = append(steps, e.GetStep())
			}
		}
		if want := []int64{1, 6, 11, 1, 6}; !slices.Equal(steps, want) {
			t.Errorf("summaries of the steps %v; want %v", steps, want)
		}
	})
}

// A global step may be negative, as in TensorFlow; its summaries are of that step.
func TestKindsNegativeStep(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		p, dir := k.process(t), t.TempDir()
		sv := p.supervisor(dir)
		sv.SaveSummariesEvery = 5 * time.Millisecond
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			p.trainStale(ctx, s, 1)
			p.setStep(ctx, s, -5)
			awaitPoint(t, sv, "w", func(step int64, w float32) bool { return step == -5 && w == 0.5 })
			return nil
		}))
	})
}

// A save that comes while steps are made is of one moment: each variable has the
// value of the step that the checkpoint names.
func TestKindsSaveIsOfOneStep(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		if k.blind {
			t.Skip("nothing is known of the session but that it runs")
		}
		p, dir := k.process(t), t.TempDir()
		sv := p.supervisor(dir)
		sv.SaveModelEvery, sv.Saver = time.Millisecond, &trainerd.Saver{MaxToKeep: -1}
		saves := func() []string {
			saved, err := filepath.Glob(filepath.Join(dir, "model.ckpt-*.index"))
			sessiontest.MustNoErr(t, err)
			return saved
		}
		const most = 10000 // for a slow disk
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			for i := 0; i < 40 || len(saves()) < 3 && i < most; i++ {
				p.train(ctx, s, 10)
				time.Sleep(time.Millisecond)
			}
			return nil
		}))
		saved := saves()
		if len(saved) < 3 {
			t.Fatalf("%d checkpoints; want some while steps are made", len(saved))
		}
		for _, index := range saved {
			prefix := strings.TrimSuffix(index, ".index")
			wantSaved(t, prefix, float32(ckptdir.StepOf(prefix))/2)
		}
	})
}

// Without a ready op a worker does not wait, not even for a value of the step.
func TestKindsWorkerWithoutReadyOp(t *testing.T) {
	forEachKind(t, func(t *testing.T, k *kind) {
		p := k.process(t)
		worker := p.supervisor("")
		worker.NonChief, worker.ReadyOp, worker.LocalInitOp = true, trainerd.None(), trainerd.None()
		began := false
		sessiontest.MustNoErr(t, worker.Run(t.Context(), func(context.Context, session.Session) error { began = true; return nil }))
		if !began {
			t.Error("the training did not begin")
		}
	})
}
