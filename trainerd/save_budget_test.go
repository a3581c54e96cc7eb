package trainerd

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

func TestSaveBudgetPause(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		budget      SaveBudget
		every, took time.Duration
		want        time.Duration
	}{
		"no bounds":              {SaveBudget{}, 600 * s, 5 * s, 600 * s},
		"share is kept anyway":   {SaveBudget{MaxShare: 0.1}, 600 * s, 5 * s, 600 * s},
		"share asks for more":    {SaveBudget{MaxShare: 0.1}, 10 * s, 5 * s, 50 * s},
		"risk asks for less":     {SaveBudget{MaxRisk: 60 * s}, 600 * s, 5 * s, 55 * s},
		"risk beats share":       {SaveBudget{MaxShare: 0.01, MaxRisk: 60 * s}, 10 * s, 5 * s, 55 * s},
		"risk without interval":  {SaveBudget{MaxRisk: 60 * s}, 0, 0, 60 * s},
		"share without interval": {SaveBudget{MaxShare: 0.1}, 0, 5 * s, 0},
		"risk cannot be had":     {SaveBudget{MaxRisk: s}, 600 * s, 5 * s, 5 * s},
		"huge":                   {SaveBudget{MaxShare: 1e-300}, s, time.Hour, 1 << 62},
	} {
		if got := tt.budget.Pause(tt.every, tt.took); got != tt.want {
			t.Errorf("%s: pause = %v; want %v", name, got, tt.want)
		}
	}
}

// Saving takes the share that the budget gives it, by time and by steps, and
// the state at risk is never older than the budget allows.
func TestSaveBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		budget SaveBudget
		every  time.Duration
		steps  int64
		want   int // saves in an hour of steps of a second; one takes two minutes
	}{
		"by time, no bounds": {SaveBudget{}, 5 * time.Minute, 0, 12},
		"by time, a tenth":   {SaveBudget{MaxShare: 0.1}, 5 * time.Minute, 0, 4},
		"by steps, a tenth":  {SaveBudget{MaxShare: 0.1}, -1, 10, 4},
		"at risk":            {SaveBudget{MaxRisk: 6 * time.Minute}, -1, 0, 14},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sessiontest.Counter()
				sv := newSupervisor(m, sessiontest.MemoryDir(t), tt.steps)
				sv.SaveModelEvery, sv.SaveBudget = tt.every, tt.budget
				sv.Saver = &checkpoint.Saver{FS: slowFS{atomicfile.OrOS(nil)}, NoManifest: true} // two minutes: two directory syncs
				sv.StopGrace = time.Hour
				count := 0
				sv.OnSave = func(s SavedCheckpoint) {
					if s.Step > 0 {
						count++
					}
				}
				sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
					for range 3600 {
						time.Sleep(time.Second)
						if err := sv.StepDone(ctx, m.Step()); err != nil {
							return err
						}
					}
					return nil
				}))
				if count < tt.want-2 || count > tt.want+2 {
					t.Errorf("%d saves; want about %d", count, tt.want)
				}
				if tt.steps > 0 && sv.Report().Saves.Skipped == 0 {
					t.Error("no save was skipped")
				}
			})
		})
	}
}

// goVariables can be embedded without hiding the method Variables.
type goVariables = Variables

// comparedVariables counts how often the Supervisor asks what has changed.
type comparedVariables struct {
	*goVariables
	asked *atomic.Int64
	most  int64
	end   context.CancelFunc
}

func (v comparedVariables) Changes(names []string) (uint64, error) {
	if v.asked.Add(1) > v.most {
		v.end()
	}
	return v.goVariables.Changes(names)
}

// While a step takes longer than the state may be at risk, there is nothing to
// save, and nothing to do.
func TestSaveBudgetWaitsForALongStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		vars, w, asked := new(Variables), make([]float32, 1), new(atomic.Int64)
		sessiontest.MustNoErr(t, vars.Float32("w", w))
		saves := 0
		sv := &Supervisor{
			Logdir: sessiontest.MemoryDir(t), SaveModelEvery: -1, SaveBudget: SaveBudget{MaxRisk: time.Minute}, SaveSummariesEvery: -1,
			NewSession: func(context.Context) (session.Session, error) {
				return comparedVariables{vars, asked, 1000, cancel}, nil
			},
			OnSave: func(SavedCheckpoint) { saves++ },
		}
		sessiontest.MustNoErr(t, sv.Run(ctx, func(ctx context.Context, _ session.Session) error {
			for range 6 {
				if !coord.Sleep(ctx, 20*time.Minute) {
					return nil
				}
				if _, err := vars.Step(func() error { w[0]++; return nil }); err != nil {
					return err
				}
			}
			return nil
		}))
		if n := asked.Load(); n > 1000 || saves != 7 {
			t.Errorf("in two hours %d saves, and asked %d times; want 7 and at most 1000", saves, n)
		}
	})
}
