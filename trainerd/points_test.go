package trainerd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/ctxmutex"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/graph"
	"github.com/trainerd/trainerd/trainerd/graph/attr"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// slowHook writes a point of each step some time after it, as one call has it or as it is
// reported.
type slowHook struct {
	hook.Funcs
	run     hook.Run
	step    atomic.Int64 // of the last point
	atCalls bool
}

func (h *slowHook) Attach(r hook.Run) { h.run = r }

func (h *slowHook) BeforeRun(context.Context, *hook.RunContext) (*hook.RunArgs, error) {
	return nil, nil
}

func (h *slowHook) AfterRun(ctx context.Context, c *hook.RunContext, _ *hook.RunValues) error {
	step, err := c.StepAfter(ctx)
	if err != nil || !h.atCalls {
		return err
	}
	return h.point(ctx, step)
}

func (h *slowHook) AfterStep(ctx context.Context, _ session.Session, step int64) error {
	if h.atCalls {
		return nil
	}
	return h.point(ctx, step)
}

func (h *slowHook) point(ctx context.Context, step int64) error {
	time.Sleep(time.Second)
	h.step.Store(step)
	return h.run.SummaryComputed(ctx, &tfpb.Summary{Value: []*tfpb.Summary_Value{summary.Scalar("own", float64(step))}}, step)
}

// heldSession saves itself while it makes no steps.
type heldSession struct {
	sessiontest.OpSession
	gate *ctxmutex.Mutex
}

func (s heldSession) HoldSteps(ctx context.Context) (func(), error) {
	if err := s.gate.Lock(ctx); err != nil {
		return nil, err
	}
	return s.gate.Unlock, nil
}

func (s heldSession) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if len(targets) == 1 && targets[0] == "train" {
		if err := s.gate.Lock(ctx); err != nil {
			return nil, err
		}
		defer s.gate.Unlock()
	}
	return s.OpSession.Run(ctx, feeds, fetches, targets)
}

// holdSteps has a run save by ops, while no step is made.
func holdSteps(sv *Supervisor, m *sessiontest.Model) {
	sv.MetaGraph = &tfpb.MetaGraphDef{GraphDef: &tfpb.GraphDef{Node: []*tfpb.NodeDef{{
		Name: "global_step", Op: "VariableV2", Attr: graph.Attrs{"dtype": attr.Type(tfpb.DataType_DT_INT64)},
	}}}}
	gate := new(ctxmutex.Mutex)
	sv.NewSession = func(ctx context.Context) (session.Session, error) {
		s, err := m.NewSession(ctx)
		return heldSession{sessiontest.OpSession{Session: s}, gate}, err
	}
	sv.Saver = &checkpoint.Saver{Def: &tfpb.SaverDef{FilenameTensorName: "save/Const:0", SaveTensorName: "save/saved:0", RestoreOpName: "save/restore"}}
	m.Ops["save/saved"] = func(s *sessiontest.Session, feeds map[string]*ckptfmt.Tensor) (*ckptfmt.Tensor, error) {
		w, err := ckptfmt.CreateBundle(string(feeds["save/Const:0"].Strings[0]), nil)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		return feeds["save/Const:0"], errors.Join(w.Add("w", s.Vars["w"].Value), w.Finish())
	}
}

// countsSteps has the op train of a model count its steps.
func countsSteps(t *testing.T, m *sessiontest.Model) {
	m.Op("train", func(s *sessiontest.Session) error {
		step, err := s.Read("global_step")
		sessiontest.MustNoErr(t, err)
		values, err := ckptfmt.Values[int64](step)
		s.Vars["global_step"] = &sessiontest.Variable{Value: ckptfmt.Scalar(values[0] + 1), Ready: true}
		return err
	})
}

// TestSavesWaitForPoints has saves by the clock fall due between a step and the points that a
// hook or the training itself writes for it: at each save the points up to its step are written.
func TestSavesWaitForPoints(t *testing.T) {
	for name, tc := range map[string]struct {
		hook           *slowHook // nil: the training writes itself
		reports, holds bool
	}{
		"a hook of calls":                 {hook: &slowHook{atCalls: true}},
		"a hook of calls, steps reported": {hook: &slowHook{atCalls: true}, reports: true},
		"a hook of steps":                 {hook: &slowHook{}},
		"a hook of steps, reported":       {hook: &slowHook{}, reports: true},
		"the training":                    {reports: true},
		"a hook of calls, steps held":     {hook: &slowHook{atCalls: true}, holds: true},
		"the training, steps held":        {reports: true, holds: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := sessiontest.Counter()
			countsSteps(t, m)
			sv := newSupervisor(m, t.TempDir(), 0)
			sv.SaveModelEvery = 700 * time.Millisecond
			if tc.holds {
				holdSteps(sv, m)
			}
			saves, written := 0, new(atomic.Int64)
			if tc.hook != nil {
				sv.Hooks, written = []Hook{tc.hook}, &tc.hook.step
			}
			sv.OnSave = func(s SavedCheckpoint) {
				if saves++; s.Step > written.Load() {
					t.Errorf("%s: step %d is saved, with points up to %d", name, s.Step, written.Load())
				}
			}
			start := time.Now()
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
				for step := int64(1); step <= 20; step++ {
					if _, err := s.Run(ctx, nil, nil, []string{"train"}); err != nil {
						return err
					}
					if tc.hook == nil {
						time.Sleep(time.Second)
						written.Store(step)
					}
					if tc.reports {
						sessiontest.MustNoErr(t, sv.StepDone(ctx, step))
					}
				}
				return nil
			}))
			if took := time.Since(start); took >= 20*time.Second+pointsGrace || saves < 10 {
				t.Errorf("%s: %d saves, in %v", name, saves, took)
			}
		})
	}
}

// TestRequestedSaveDoesNotWait has a training ask for a save before it reports its step, while one
// by the clock waits for that.
func TestRequestedSaveDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		countsSteps(t, m)
		sv := newSupervisor(m, t.TempDir(), 0)
		sv.SaveModelEvery = 700 * time.Millisecond
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			for step := int64(1); step <= 20; step++ {
				if _, err := s.Run(ctx, nil, nil, []string{"train"}); err != nil {
					return err
				}
				time.Sleep(time.Second)
				asked := time.Now()
				if _, err := sv.Save(ctx); err != nil {
					return err
				}
				if waited := time.Since(asked); waited > time.Second {
					t.Errorf("step %d: a save takes %v", step, waited)
				}
				if err := sv.StepDone(ctx, step); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

// TestSaveLetsOthersStep has other workers make steps after those of a chief, whose steps take
// longer than a save waits for points. The points of the others' steps are not this chief's: a
// save that keeps its next step waiting does not wait for them, in whichever way that is run.
func TestSaveLetsOthersStep(t *testing.T) {
	for name, unmanaged := range map[string]bool{"managed": false, "unmanaged": true} {
		synctest.Test(t, func(t *testing.T) {
			m := sessiontest.Counter()
			made := int64(0)
			m.Op("train", func(s *sessiontest.Session) error {
				time.Sleep(12 * time.Second)
				made += 2 // one of another worker
				s.Vars["global_step"] = &sessiontest.Variable{Value: ckptfmt.Scalar(made), Ready: true}
				return nil
			})
			sv := newSupervisor(m, t.TempDir(), 0)
			sv.SaveModelEvery = 30 * time.Second
			holdSteps(sv, m)
			saves := 0
			sv.OnSave = func(SavedCheckpoint) { saves++ }
			start := time.Now()
			sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
				for range 20 {
					step, end := StepContext(ctx)
					run := s
					if unmanaged {
						run = s.(interface{ Unwrap() session.Session }).Unwrap()
					}
					if _, err := run.Run(step, nil, nil, []string{"train"}); err != nil {
						return err
					}
					end()
					sessiontest.MustNoErr(t, sv.StepDone(ctx, made-1))
				}
				return nil
			}))
			if took := time.Since(start); took > 20*12*time.Second+time.Second || saves < 7 {
				t.Errorf("%s: %d saves, in %v", name, saves, took)
			}
		})
	}
}

// TestEndsDuringTheWait has a training fail, or be stopped, while a save waits for the points of
// its step: the save is over before anything else begins, and what follows is as without it.
func TestEndsDuringTheWait(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		holds bool
		from  int64 // where the next session begins, NoStep for none
	}{
		"rewind":           {&hook.NaNError{Step: 5}, false, 4},
		"lost session":     {session.ErrUnavailable, false, 5},
		"stop":             {nil, false, session.NoStep},
		"stop, steps held": {nil, true, session.NoStep},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := sessiontest.Counter()
			countsSteps(t, m)
			sv := newSupervisor(m, t.TempDir(), 0)
			sv.SaveModelEvery, sv.SaveModelSteps, sv.MaxRewinds, sv.MaxRestarts = 4500*time.Millisecond, 4, 1, 1
			if tc.holds {
				holdSteps(sv, m)
			}
			sessions, from, waited := 0, int64(session.NoStep), time.Duration(0)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var failed time.Time
			err := sv.Run(ctx, func(ctx context.Context, s session.Session) error {
				begin, err := session.ReadStep(ctx, s, "global_step")
				sessiontest.MustNoErr(t, err)
				if sessions++; sessions > 1 {
					from, waited = begin, time.Since(failed)
					return session.ErrCompleted
				}
				for step := begin + 1; ; step++ {
					if _, err := s.Run(ctx, nil, nil, []string{"train"}); err != nil {
						return err
					}
					time.Sleep(time.Second)
					if step == 5 { // a save by the clock waits for half a second
						if failed = time.Now(); tc.err == nil {
							stop()
						}
						return tc.err
					}
					sessiontest.MustNoErr(t, sv.StepDone(ctx, step))
				}
			})
			if waited = max(waited, time.Since(failed)); err != nil || from != tc.from || waited > 5*time.Second {
				t.Errorf("%s: Run = %v; the next session begins at step %d, after %v; want step %d", name, err, from, waited, tc.from)
			}
			if last, ok := sv.LastSave(); name == "stop" && (!ok || last.Step != 5) {
				t.Errorf("%s: the last save is of step %d", name, last.Step)
			}
		})
	}
}
