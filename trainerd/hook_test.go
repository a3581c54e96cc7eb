package trainerd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestHookOrder(t *testing.T) {
	tests := []struct {
		name string
		fail string // call that fails
		err  error
		want []string
		ends error
	}{
		{"all", "", nil, []string{"begin", "train", "step 1", "step 2", "end"}, nil},
		{"begin fails", "begin", errFirst, []string{"begin"}, errFirst},
		{"step fails", "step 1", errFirst, []string{"begin", "train", "step 1"}, errFirst},
		{"step ends the training", "step 1", session.ErrOutOfRange, []string{"begin", "train", "step 1", "end"}, nil},
		{"end fails", "end", errFirst, []string{"begin", "train", "step 1", "step 2", "end"}, errFirst},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var calls []string
			call := func(name string) error {
				calls = append(calls, name)
				if name == tt.fail {
					return tt.err
				}
				return nil
			}
			dir := t.TempDir()
			m := sessiontest.Counter()
			sv := newSupervisor(m, dir, 100)
			sv.Hooks = []Hook{hook.Funcs{}, hook.Funcs{
				BeginFunc:     func(context.Context, session.Session) error { return call("begin") },
				AfterStepFunc: func(_ context.Context, _ session.Session, step int64) error { return call(fmt.Sprint("step ", step)) },
				EndFunc:       func(context.Context, session.Session) error { return call("end") },
			}}
			err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
				calls = append(calls, "train")
				return stepsTo(m, sv, 2)(ctx, s)
			})
			if !errors.Is(err, tt.ends) || tt.ends == nil && err != nil {
				t.Errorf("Run = %v; want %v", err, tt.ends)
			}
			if diff := cmp.Diff(calls, tt.want); diff != "" {
				t.Errorf("calls (-got +want):\n%s", diff)
			}
			if saved := len(sessiontest.Files(t, dir, "*.index")) > 0; saved != (tt.ends == nil) {
				t.Errorf("final checkpoint: %v; want %v", saved, tt.ends == nil)
			}
		})
	}
}

func TestHookEndAfterStop(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, "", 0)
	sv.Hooks = []Hook{hook.Funcs{EndFunc: func(ctx context.Context, s session.Session) error {
		_, err := s.Run(ctx, nil, []string{"w"}, nil)
		return errors.Join(err, ctx.Err())
	}}}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		sv.RequestStop(nil)
		<-ctx.Done()
		return ctx.Err()
	}))
}

func TestStopAtStep(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 100)
	sv.Hooks = []Hook{&StopAtStep{LastStep: 7}}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 1000)))
	if diff := cmp.Diff(sessiontest.Files(t, sv.Logdir, "*.index"), []string{"model.ckpt-7.index"}); diff != "" {
		t.Errorf("checkpoints (-got +want):\n%s", diff)
	}
}

func TestNaNGuard(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		loss := 1.0
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 2)
		sv.Hooks = []Hook{&NaNGuard{Loss: func() float64 { return loss }}}
		err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			if err := stepsTo(m, sv, 5)(ctx, s); err != nil {
				return err
			}
			loss = bad
			return stepsTo(m, sv, 100)(ctx, s)
		})
		var nan *NaNError
		if !errors.As(err, &nan) || nan.Step != 6 {
			t.Errorf("loss %v: Run = %v; want a NaNError of step 6", bad, err)
		}
		if diff := cmp.Diff(sessiontest.Files(t, sv.Logdir, "*.index"), []string{"model.ckpt-2.index", "model.ckpt-4.index"}); diff != "" {
			t.Errorf("checkpoints; none has the bad step (-got +want):\n%s", diff)
		}
	}
}

func TestTrigger(t *testing.T) {
	tests := []struct {
		name    string
		trigger Trigger
		want    []int64 // due of the steps 0 to 9, one a second
	}{
		{"steps", Trigger{Steps: 3}, []int64{0, 3, 6, 9}},
		{"time", Trigger{Every: 2500 * time.Millisecond}, []int64{0, 3, 6, 9}},
		{"either", Trigger{Steps: 4, Every: 3 * time.Second}, []int64{0, 3, 6, 9}},
		{"neither", Trigger{}, []int64{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []int64
				for step := range int64(10) {
					elapsed, due := tt.trigger.Due(step)
					if due {
						got = append(got, step)
						if want := 3 * time.Second; step > 0 && elapsed != want || step == 0 && elapsed != 0 {
							t.Errorf("step %d: elapsed %v", step, elapsed)
						}
					}
					if _, again := tt.trigger.Due(step); again {
						t.Errorf("step %d is due twice", step)
					}
					time.Sleep(time.Second)
				}
				if diff := cmp.Diff(got, tt.want); diff != "" {
					t.Errorf("due (-got +want):\n%s", diff)
				}
			})
		})
	}
}

// Where the step is set back, what counts steps is due at once, and counts from
// there; what goes by time waits.
func TestTriggerOfStepSetBack(t *testing.T) {
	for want, trigger := range map[string]*Trigger{
		"[0 3 6 9 2 5]": {Steps: 3},
		"[0]":           {Every: time.Hour},
	} {
		var got []int64
		for _, step := range []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 2, 3, 4, 5, 6} {
			if _, due := trigger.Due(step); due {
				got = append(got, step)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("due at %v; want %s", got, want)
		}
	}
}
