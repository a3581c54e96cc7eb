package trainerd

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/hook"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// hungFS is a disk that answers no more until it is released.
type hungFS struct {
	atomicfile.FS
	dir     string
	release chan struct{}
}

func (f hungFS) SyncDir(name string) error {
	if name == f.dir {
		<-f.release
	}
	return f.FS.SyncDir(name)
}

// A disk that hangs does not keep a run from ending: the final save, or the one
// under way, is named with its stack, and the logdir stays locked.
func TestFinalSaveHasATimeLimit(t *testing.T) {
	for name, saveSteps := range map[string]int64{"final save": 100, "save under way": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sessiontest.Counter()
				sv := newSupervisor(m, t.TempDir(), saveSteps)
				sv.StopGrace = 10 * time.Second
				disk := hungFS{atomicfile.OrOS(nil), sv.Logdir, make(chan struct{})}
				sv.Saver = &checkpoint.Saver{FS: disk}
				start := time.Now()
				err := sv.Run(t.Context(), stepsTo(m, sv, 3))
				var stop *coord.StopError
				if !errors.As(err, &stop) || len(stop.Stragglers) != 1 || stop.Stragglers[0].Stack == "" {
					t.Errorf("Run = %v; want a *StopError with one straggler and its stack", err)
				}
				if took := time.Since(start); took > time.Minute {
					t.Errorf("the end took %v", took)
				}
				var locked *logdir.LockedError
				if err := logdir.Check(sv.Logdir); !errors.As(err, &locked) {
					t.Errorf("CheckLogdir = %v; want that it is locked", err)
				}
				close(disk.release)
				synctest.Wait()
				sessiontest.MustNoErr(t, logdir.Check(sv.Logdir))
			})
		})
	}
}

// hangForAnHour gives a Supervisor a disk that hangs.
func hangForAnHour(sv *Supervisor) hungFS {
	disk := hungFS{atomicfile.OrOS(nil), sv.Logdir, make(chan struct{})}
	sv.Saver, sv.SaveGrace = &checkpoint.Saver{FS: disk}, time.Second
	time.AfterFunc(time.Hour, func() { close(disk.release) })
	return disk
}

// A save that hangs when its session is lost, as one that waits for the servers, keeps the
// logdir locked until it has ended, and the next session waits for that.
func TestSaveHangsInALostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 2)
		sv.MaxRestarts = 1
		hangForAnHour(sv)
		began := time.Now()
		sessions := 0
		err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			if sessions++; sessions == 1 {
				return errors.Join(stepsTo(m, sv, 3)(ctx, s), session.ErrUnavailable)
			}
			return stepsTo(m, sv, 5)(ctx, s)
		})
		if err != nil || sessions != 2 || time.Since(began) < time.Hour {
			t.Errorf("Run = %v after %d sessions and %v; want the second when the save has ended", err, sessions, time.Since(began))
		}
		sessiontest.MustNoErr(t, logdir.Check(sv.Logdir))
	})
}

// So does a rewind: what hangs may be a checkpoint from after the fault.
func TestSaveHangsAtARewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 2)
		sv.MaxRewinds = 1
		disk := &hangsLater{hungFS: hangForAnHour(sv)}
		sv.Saver.FS = disk
		var began []int64
		err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			step, err := session.ReadStep(ctx, s, session.DefaultGlobalStep)
			sessiontest.MustNoErr(t, err)
			if began = append(began, step); len(began) > 1 {
				return stepsTo(m, sv, 5)(ctx, s)
			}
			sessiontest.MustNoErr(t, stepsTo(m, sv, 3)(ctx, s))
			time.Sleep(time.Second) // the save of step 2 ends
			disk.hangs.Store(true)
			sessiontest.MustNoErr(t, stepsTo(m, sv, 4)(ctx, s))
			time.Sleep(time.Second)
			return &hook.NaNError{Step: 4, Loss: math.NaN()}
		})
		if err != nil || !slices.Equal(began, []int64{0, 2}) {
			t.Errorf("Run = %v; the sessions began at the steps %v", err, began)
		}
	})
}

// hangsLater is a disk that hangs once it is told to.
type hangsLater struct {
	hungFS
	hangs atomic.Bool
}

func (f *hangsLater) SyncDir(name string) error {
	if f.hangs.Load() {
		return f.hungFS.SyncDir(name)
	}
	return f.FS.SyncDir(name)
}

// A stop does not wait for such a save.
func TestStopWhileSaveHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 2)
		sv.MaxRestarts = 1
		hangForAnHour(sv)
		began := time.Now()
		time.AfterFunc(5*time.Minute, func() { sv.RequestStop(nil) })
		err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			return errors.Join(stepsTo(m, sv, 3)(ctx, s), session.ErrUnavailable)
		})
		if took := time.Since(began); took > 6*time.Minute {
			t.Errorf("the stop took %v: %v", took, err)
		}
		time.Sleep(time.Hour)
	})
}

// A disk that is slow but not dead is told to give up between two tensors, and
// the logdir is free then.
func TestFinalSaveGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 100)
		sv.SaveGrace = time.Second
		sv.Listeners = []CheckpointListener{ListenerFuncs{BeforeSaveFunc: func(context.Context, session.Session) error {
			time.Sleep(1500 * time.Millisecond)
			return nil
		}}}
		if err := sv.Run(t.Context(), stepsTo(m, sv, 3)); err == nil || !strings.Contains(err.Error(), "given up after 1s") {
			t.Errorf("Run = %v; want that the final save was given up", err)
		}
		sessiontest.MustNoErr(t, logdir.Check(sv.Logdir))
		if got := sessiontest.Files(t, sv.Logdir, "model*"); len(got) > 0 {
			t.Errorf("files %v are left", got)
		}
	})
}

// lostSession cannot be saved once its training is over.
type lostSession struct {
	*sessiontest.Session
	over *atomic.Bool
	lost func(context.Context) error
}

func (s lostSession) Snapshot(ctx context.Context, names []string) (*session.Snapshot, error) {
	if s.over.Load() {
		if err := s.lost(ctx); err != nil {
			return nil, err
		}
	}
	return s.Session.Snapshot(ctx, names)
}

// Where the session is lost when the training has ended, another one saves.
func TestFinalSaveOfALostSession(t *testing.T) {
	for want, lost := range map[string]func(context.Context) error{
		"unavailable: the session has not answered for 2m0s": func(ctx context.Context) error {
			<-ctx.Done()
			return session.ErrCancelled
		},
		"aborted": func(context.Context) error { return session.ErrAborted },
	} {
		synctest.Test(t, func(t *testing.T) {
			m := sessiontest.Counter()
			sv := newSupervisor(m, t.TempDir(), 100)
			sessions := 0
			var over atomic.Bool
			sv.NewSession = func(ctx context.Context) (session.Session, error) {
				s, err := m.NewSession(ctx)
				if sessions++; sessions == 2 {
					return s, err
				}
				over.Store(false)
				return lostSession{s.(*sessiontest.Session), &over, lost}, err
			}
			train := func(ctx context.Context, s session.Session) error {
				defer over.Store(true)
				return stepsTo(m, sv, 3)(ctx, s)
			}
			if err := sv.Run(t.Context(), train); err == nil || !strings.Contains(err.Error(), "final checkpoint: "+want) {
				t.Errorf("Run = %v, want %q", err, want)
			}
			sv.MaxRestarts = 1
			sessions = 0
			err := sv.Run(t.Context(), train)
			if got := sessiontest.Files(t, sv.Logdir, "model.ckpt-3.index"); err != nil || sessions != 2 || len(got) != 1 {
				t.Errorf("Run = %v after %d sessions; files %v", err, sessions, got)
			}
		})
	}
}

// The disk has its grace period also where the session has taken nearly as long to answer.
func TestFinalSaveIsAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, t.TempDir(), 100)
		sv.SaveGrace = 10 * time.Minute
		sv.Saver = &checkpoint.Saver{FS: slowFS{atomicfile.OrOS(nil)}, NoManifest: true} // some minutes
		var over atomic.Bool
		sv.NewSession = func(ctx context.Context) (session.Session, error) {
			s, err := m.NewSession(ctx)
			late := func(context.Context) error {
				over.Store(false)
				time.Sleep(sv.SaveGrace - time.Second)
				return nil
			}
			return lostSession{s.(*sessiontest.Session), &over, late}, err
		}
		sv.Listeners = []CheckpointListener{ListenerFuncs{BeforeSaveFunc: func(context.Context, session.Session) error {
			over.Store(m.Step() == 3)
			return nil
		}}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 3)))
	})
}

func TestSaveGraceFollowsTheSlowestSave(t *testing.T) {
	sv := &Supervisor{StopGrace: time.Second}
	sv.stats.saved(time.Minute)
	if grace, limited := sv.saveGrace(); grace != 10*time.Minute || !limited {
		t.Errorf("grace %v, %v", grace, limited)
	}
	sv.SaveGrace = -1
	if _, limited := sv.saveGrace(); limited {
		t.Error("a negative grace is a limit")
	}
}
