package trainerd

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// What OnRewind changes is in the session, so one that is lost before a
// checkpoint has it takes it along: the session after it is prepared in the same
// way, however often that happens.
func TestRewindOfSessionsThatAreLost(t *testing.T) {
	lost := fmt.Errorf("planted: %w", session.ErrUnavailable)
	for _, tt := range []struct {
		name     string
		onRewind int   // how many calls of OnRewind fail
		after    int64 // the session is lost once after this step, 0 for never
		want     []string
	}{
		{"nothing is lost", 0, 0, []string{"8 1"}},
		{"in OnRewind", 1, 0, []string{"8 1", "8 1"}},
		{"in OnRewind, twice", 2, 0, []string{"8 1", "8 1", "8 1"}},
		{"before the next checkpoint", 0, 9, []string{"8 1", "8 1"}},
		{"after the next checkpoint", 0, 11, []string{"8 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sessiontest.Counter()
				sv := newSupervisor(m, t.TempDir(), 2)
				sv.MaxRewinds, sv.MaxRestarts = 3, 3
				loss, mended, fails := 1.0, false, tt.onRewind
				sv.Hooks = []Hook{&NaNGuard{Loss: func() float64 { return loss }}}
				var told []string
				sv.OnRewind = func(_ context.Context, _ session.Session, r Rewind) error {
					told = append(told, fmt.Sprint(r.Step, r.Count))
					if fails > 0 {
						fails--
						return lost
					}
					mended = true // in the session alone
					return nil
				}
				err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
					began, _ := session.ScalarInt(m.Get("global_step"))
					if began < 8 {
						mended = false
					}
					for n := began; n < 14; {
						n, loss = m.Step(), 1
						if n == 9 && !mended {
							loss = math.NaN()
						}
						if err := sv.StepDone(ctx, n); err != nil {
							return err
						}
						if mended && n == tt.after {
							tt.after, mended = 0, false
							return lost
						}
						if n == 10 {
							if _, err := sv.Save(ctx); err != nil {
								return err
							}
						}
					}
					return nil
				})
				sessiontest.MustNoErr(t, err)
				if diff := cmp.Diff(told, tt.want); diff != "" {
					t.Errorf("told of (-got +want):\n%s", diff)
				}
			})
		})
	}
}

// A model that is alive on its servers is the one whose loss is NaN: after the
// decision to go back it is restored, not adopted.
func TestRewindAdoptsNothing(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 2)
	sv.MaxRewinds = 1
	asked, began := 0, []int64{}
	sv.Adopt = func(context.Context, session.Session) (bool, error) {
		asked++
		return asked > 1, nil
	}
	loss := 1.0
	sv.Hooks = []Hook{&NaNGuard{Loss: func() float64 { return loss }}}
	err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		n, _ := session.ScalarInt(m.Get("global_step"))
		began = append(began, n)
		for n < 7 {
			n, loss = m.Step(), 1
			if n == 5 && len(began) == 1 {
				loss = math.NaN()
			}
			if err := sv.StepDone(ctx, n); err != nil {
				return err
			}
		}
		return nil
	})
	sessiontest.MustNoErr(t, err)
	if diff := cmp.Diff(began, []int64{0, 4}); diff != "" || asked != 1 {
		t.Errorf("sessions began at (-got +want):\n%s\nAdopt was asked %d times", diff, asked)
	}
}

// A stop after going back leaves nothing for the next run of the same Supervisor.
func TestRewindIsOfOneRun(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 2)
	sv.MaxRewinds = 1
	loss, told := 1.0, 0
	sv.Hooks = []Hook{&NaNGuard{Loss: func() float64 { return loss }}}
	sv.OnRewind = func(context.Context, session.Session, Rewind) error { told++; return nil }
	for run := range 2 {
		err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			for n := int64(0); n < 5; {
				if told > 0 {
					sv.RequestStop(nil)
					return nil
				}
				n, loss = m.Step(), 1
				if n == 5 {
					loss = math.NaN()
				}
				if err := sv.StepDone(ctx, n); err != nil {
					return err
				}
			}
			return nil
		})
		sessiontest.MustNoErr(t, err)
		if told != 1 {
			t.Errorf("run %d: OnRewind was called %d times; want one", run, told)
		}
	}
}
