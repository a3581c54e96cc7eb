package trainerd_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// longSave is how long the sessions of these tests hold their steps for a save.
const longSave = 17 * time.Second

// slowCopy is a session that makes no step while its variables are copied.
type slowCopy struct {
	session.VariableStore
	turn chan struct{}
}

func (s slowCopy) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return s.VariableStore.Run(ctx, feeds, fetches, targets)
}

func (s slowCopy) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if len(names) > 1 { // more than the step
		time.Sleep(longSave)
	}
	return s.VariableStore.Snapshot(ctx, names)
}

// slowServer is a session that is slow to save itself.
type slowServer struct{ session.StepHolder }

func (s slowServer) Run(ctx context.Context, feeds map[string]*ckptfmt.Tensor, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if slices.Contains(fetches, "save/control_dependency:0") {
		time.Sleep(longSave)
	}
	return s.StepHolder.Run(ctx, feeds, fetches, targets)
}

// slowToSave returns a session that holds its steps for a long time to save them, if
// it holds them at all.
func slowToSave(s session.Session) session.Session {
	store, isStore := s.(session.VariableStore)
	_, isLazy := s.(session.LazyStore)
	holder, holds := s.(session.StepHolder)
	switch {
	case isStore && !isLazy:
		return slowCopy{store, make(chan struct{}, 1)}
	case holds && !isStore:
		return slowServer{holder}
	}
	return s
}

// Saves by the clock that hold steps for longer than their interval leave the training
// half of the time, whether there is a budget or not, and each has another step.
func TestKindsLongSavesLeaveTime(t *testing.T) {
	for name, tune := range map[string]func(*trainerd.Supervisor){
		"interval": func(sv *trainerd.Supervisor) { sv.SaveModelEvery = 7 * time.Second },
		"budget": func(sv *trainerd.Supervisor) {
			sv.SaveModelEvery, sv.SaveBudget = 7*time.Second, trainerd.SaveBudget{MaxRisk: 14 * time.Second, MaxShare: 0.2}
		},
	} {
		for _, k := range kinds {
			if k.blind {
				continue // it holds nothing
			}
			t.Run(name+", "+k.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { longSavesLeaveTime(t, k, tune) })
			})
		}
	}
}

func longSavesLeaveTime(t *testing.T, k *kind, tune func(*trainerd.Supervisor)) {
	p, saves := k.process(t), map[int64]int{}
	log, lines := sessiontest.NewLog()
	sv := p.supervisor(sessiontest.MemoryDir(t))
	sv.Logger, sv.OnSave = log, func(s trainerd.SavedCheckpoint) { saves[s.Step]++ }
	held := false
	sv.NewSession = func(ctx context.Context) (session.Session, error) {
		s, err := p.open(ctx)
		slow := slowToSave(s)
		held = slow != s
		return slow, err
	}
	tune(sv)
	steps := 0
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
		for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); steps++ {
			time.Sleep(time.Second)
			p.train(ctx, s, 1)
		}
		return nil
	}))
	least, most := 300, 300
	if held {
		least, most = 125, 250
	}
	if steps < least || steps > most {
		t.Errorf("%d steps of a second in 5 minutes; want %d to %d", steps, least, most)
	}
	for step, n := range saves {
		if n > 1 {
			t.Errorf("step %d is saved %d times", step, n)
		}
	}
	if len(saves) < 7 {
		t.Errorf("%d saves in 5 minutes", len(saves))
	}
	if held && sv.SaveBudget.MaxRisk > 0 {
		sessiontest.WantLog(t, lines, "saves take so long that a crash may lose more work than the limit allows")
	}
}

// slowSyncs is a disk that takes a minute to sync a directory.
type slowSyncs struct{ ckptfmt.FS }

func (f slowSyncs) SyncDir(name string) error {
	time.Sleep(time.Minute)
	return f.FS.SyncDir(name)
}

// Steps continue while the disk is synced, whether the server or the client writes the checkpoint.
func TestKindsSlowDiskHoldsNoSteps(t *testing.T) {
	for _, k := range kinds {
		if k.blind {
			continue // it may save only between two steps
		}
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := k.process(t)
				sv := p.supervisor(sessiontest.MemoryDir(t))
				sv.SaveGrace, sv.SaveModelEvery, sv.SaveModelSteps, sv.Saver = -1, -1, 10, &trainerd.Saver{FS: slowSyncs{atomicfile.OrOS(nil)}}
				sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
					_, err := sv.Save(ctx) // the first one also makes the folder durable
					began := time.Now()
					for range 19 {
						time.Sleep(time.Second)
						p.train(ctx, s, 1)
						if p.vars != nil {
							sessiontest.MustNoErr(t, sv.StepDone(ctx, p.step[0]))
						}
					}
					if took := time.Since(began); took > 30*time.Second {
						t.Errorf("19 steps of a second took %v", took)
					}
					return err
				}))
				if saved, _ := sv.LastSave(); saved.Step != 19 {
					t.Errorf("the last save is %+v", saved)
				}
			})
		})
	}
}
