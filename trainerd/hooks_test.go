package trainerd_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/session"
	"github.com/trainerd/trainerd/trainerd/target"
)

func savedSteps(t *testing.T, logdir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(logdir, "*.index"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), "model.ckpt-"), ".index")
	}
	return strings.Join(names, " ")
}

// A training need not call StepDone, and may: its hooks and checkpoints are the
// same, at every master.
func TestStepsAreNoticed(t *testing.T) {
	for _, kind := range masters {
		for name, stepDone := range map[string]bool{"by itself": false, "told": true} {
			t.Run(kind.name+", "+name, func(t *testing.T) {
				var steps []int64
				record := func(_ context.Context, s session.Session, step int64) error {
					steps = append(steps, step)
					return trainerd.RunOps(context.Background(), s, "noop") // a hook's own call is not a step
				}
				sv := hooked(t, hook.Funcs{AfterStepFunc: record}, &trainerd.StopAtStep{LastStep: 5})
				sv.SaveModelSteps, sv.Master, sv.Open = 2, kind.master(t), kind.open()
				run(t, sv, func(ctx context.Context, sess session.Session) error {
					return sv.UntilStop(func() error {
						err := trainerd.RunOps(ctx, sess, "train")
						if err == nil && stepDone {
							err = sv.StepDone(ctx, int64(len(steps)+1))
						}
						return err
					})
				})
				if want := []int64{1, 2, 3, 4, 5}; !slices.Equal(steps, want) {
					t.Errorf("hooks saw steps %v; want %v", steps, want)
				}
				if got := savedSteps(t, sv.Logdir); got != "2 4 5" {
					t.Errorf("checkpoints of steps %s; want 2 4 5", got)
				}
			})
		}
	}
}

// test_last_step of TensorFlow's MonitoredSessionTest: the last step asks for
// the stop, and what runs after it all the same is refused.
func TestLastStepStops(t *testing.T) {
	sv := hooked(t, &trainerd.StopAtStep{LastStep: 3})
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		for step := 1; ; step++ {
			if err := trainerd.RunOps(ctx, sess, "train"); err != nil {
				if step != 4 {
					t.Errorf("call %d failed: %v", step, err)
				}
				return err
			}
			if stop := sv.ShouldStop(); stop != (step == 3) {
				t.Errorf("after step %d: should stop: %t", step, stop)
			}
		}
	})
}

// A run of one step is noticed at its end.
func TestOnlyStepIsNoticed(t *testing.T) {
	var seen int64
	sv := hooked(t, hook.Funcs{AfterStepFunc: func(_ context.Context, _ session.Session, step int64) error { seen = step; return nil }})
	run(t, sv, times(1))
	if seen != 1 {
		t.Errorf("the hook saw step %d; want 1", seen)
	}
}

// A training that reports its steps puts something aside first: no hook looks
// before, not even after the first step.
func TestStepsToldAreNotNoticedBefore(t *testing.T) {
	aside := int64(0)
	sv := hooked(t, hook.Funcs{AfterStepFunc: func(_ context.Context, _ session.Session, step int64) error {
		if aside != step {
			t.Errorf("at step %d the value of step %d is aside", step, aside)
		}
		return nil
	}})
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		for step := int64(1); step <= 3; step++ {
			if err := trainerd.RunOps(ctx, sess, "train"); err != nil {
				return err
			}
			aside = step
			if err := sv.StepDone(ctx, step); err != nil {
				return err
			}
		}
		return nil
	})
}

// A hook's error ends the training at its step, which is not saved.
func TestHookErrorOfNoticedStep(t *testing.T) {
	sv := hooked(t, hook.Funcs{AfterStepFunc: func(_ context.Context, _ session.Session, step int64) error {
		if step == 2 {
			return errHook
		}
		return nil
	}})
	sv.SaveModelSteps = 1
	wantErrorWith(t, sv.Run(t.Context(), times(10)), errHook.Error())
	if got := savedSteps(t, sv.Logdir); got != "1" {
		t.Errorf("checkpoints of steps %s; want 1", got)
	}
}

// A session without hooks costs no more than the runtime's own, and no more
// with hooks once the training reports its steps.
func TestManagedRunCostsNothing(t *testing.T) {
	bare, err := target.Open(t.Context(), "", hookGraph(t, "global_step", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	targets := []string{"noop"}
	want := testing.AllocsPerRun(100, func() {
		if _, err := bare.Run(t.Context(), nil, nil, targets); err != nil {
			t.Error(err)
		}
	})
	for name, hooks := range map[string][]trainerd.Hook{"no hooks": nil, "hooks": {hook.Funcs{}}} {
		sv := hooked(t, hooks...)
		run(t, sv, func(ctx context.Context, sess session.Session) error {
			if err := sv.StepDone(ctx, 0); err != nil {
				return err
			}
			got := testing.AllocsPerRun(100, func() {
				if _, err := sess.Run(ctx, nil, nil, targets); err != nil {
					t.Error(err)
				}
			})
			if got > want {
				t.Errorf("%s: %v allocations a call; want %v", name, got, want)
			}
			return nil
		})
	}
}

// SummaryComputed takes what a fetch gives.
func TestSummaryComputedOfFetch(t *testing.T) {
	sv := hooked(t)
	run(t, sv, func(ctx context.Context, sess session.Session) error {
		out, err := sess.Run(ctx, nil, []string{"my_summary:0"}, []string{"train"})
		if err != nil {
			return err
		}
		if err := sv.SummaryComputed(ctx, out[0], -1); err != nil {
			return err
		}
		text, err := trainerd.FetchScalar[string](ctx, sess, "my_summary:0", "train")
		if err != nil {
			return err
		}
		if err := sv.SummaryComputed(ctx, text, 5); err != nil {
			return err
		}
		wantErrorWith(t, sv.SummaryComputed(ctx, float(1), 6), "want a string")
		wantErrorWith(t, sv.SummaryComputed(ctx, 3, 6), "int is not a summary")
		wantErrorWith(t, sv.SummaryComputed(ctx, "\xff", 6), "summary op")
		if err := sv.SummaryComputed(ctx, []byte(text), 7); err != nil {
			return err
		}
		return sv.SummaryComputed(ctx, []*ckptfmt.Tensor{out[0]}, 9)
	})
	got := points(t, sv.Logdir, "my_summary")
	if want := []int64{1, 5, 7, 9}; !slices.Equal(stepsOf(got), want) || got[1] != 1 || got[7] != 2 || got[9] != 1 {
		t.Errorf("points %v; want at %v", got, want)
	}
}

// A step in WithoutSaves is noted after it, for the save that is due waits for its
// end, also when more calls follow there, as those of an evaluation.
func TestStepsWithoutSaves(t *testing.T) {
	for name, stepDone := range map[string]bool{"by itself": false, "told": true} {
		t.Run(name, func(t *testing.T) {
			sv := hooked(t)
			sv.SaveModelSteps, sv.Master, sv.Open = 1, masters[0].master(t), masters[0].open()
			run(t, sv, func(ctx context.Context, sess session.Session) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute) // rather than a hang
				defer cancel()
				for step := range int64(3) {
					err := sv.WithoutSaves(ctx, func(ctx context.Context) error {
						return errors.Join(trainerd.RunOps(ctx, sess, "train"), trainerd.RunOps(ctx, sess, "noop"), trainerd.RunOps(ctx, sess, "noop"))
					})
					if err == nil && stepDone {
						err = sv.StepDone(ctx, step+1)
					}
					if err != nil {
						return err
					}
					if err := trainerd.RunOps(ctx, sess, "noop"); err != nil {
						return err
					}
				}
				return nil
			})
			if got := savedSteps(t, sv.Logdir); got != "1 2 3" {
				t.Errorf("checkpoints of steps %s; want 1 2 3", got)
			}
		})
	}
}
