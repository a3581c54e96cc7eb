package trainerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/report"
	"github.com/trainerd/trainerd/trainerd/session"
)

// lossOfLogdir runs a training to step 3, has something done to its logdir, and
// asks for a save, or waits for the watch where none is asked for.
func lossOfLogdir(t *testing.T, dir string, save bool, harm func()) (log string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 2)
		logger, lines := sessiontest.NewLog()
		sv.Logger = logger
		sv.Saver = &checkpoint.Saver{MaxToKeep: 2}
		sv.OnRelock = func() {
			sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, "own"), nil, 0o666))
		}
		err = sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
			if err := stepsTo(m, sv, 3)(ctx, s); err != nil {
				return err
			}
			synctest.Wait()
			harm()
			if save {
				sv.Save(ctx)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute): // the run has noticed nothing, or mended it
			}
			return nil
		})
		log = lines.String()
	})
	return log, err
}

func mustHold(t *testing.T, dir string) *logdir.Lock {
	t.Helper()
	lock, err := logdir.Acquire(dir, nil)
	sessiontest.MustNoErr(t, err)
	t.Cleanup(func() { lock.Release() })
	return lock
}

// A run whose lock goes with its name does no harm to others, says so, and keeps
// its state where that is safe.
func TestLogdirIsLost(t *testing.T) {
	for _, save := range []bool{true, false} {
		t.Run(map[bool]string{true: "at a save", false: "by the watch"}[save], func(t *testing.T) {
			parent := t.TempDir()
			in := func(names ...string) string { return filepath.Join(append([]string{parent}, names...)...) }
			step3 := func(dir string) {
				t.Helper()
				if _, err := ckptdir.Find(filepath.Join(dir, "model.ckpt-3")); err != nil {
					t.Errorf("no checkpoint of the last step: %v", err)
				}
				if state, err := ckptdir.ReadState(dir, nil); err != nil || filepath.Base(state.GetModelCheckpointPath()) != "model.ckpt-3" {
					t.Errorf("the state file: %v, %v", state, err)
				}
			}

			t.Run("lock file removed", func(t *testing.T) {
				dir := in("removed")
				log, err := lossOfLogdir(t, dir, save, func() {
					sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, logdir.LockFile)))
				})
				sessiontest.MustNoErr(t, err)
				if strings.Count(log, "the logdir is locked again") != 1 {
					t.Errorf("log %s", log)
				}
				step3(dir)
				if n := len(sessiontest.Files(t, dir, "*tfevents*")); n != 1 {
					t.Errorf("%d events files; want the old one", n)
				}
			})
			t.Run("emptied", func(t *testing.T) {
				dir := in("emptied")
				_, err := lossOfLogdir(t, dir, save, func() {
					for _, name := range sessiontest.Files(t, dir, "*") {
						sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, name)))
					}
				})
				sessiontest.MustNoErr(t, err)
				step3(dir)
				for _, name := range []string{"own", "*tfevents*"} {
					if len(sessiontest.Files(t, dir, name)) != 1 {
						t.Errorf("no new %s in %v", name, sessiontest.Files(t, dir, "*"))
					}
				}
				if state, err := ckptdir.ReadState(dir, nil); err != nil || len(state.GetAllModelCheckpointPaths()) != 1 {
					t.Errorf("the state file has more than there is: %v, %v", state, err)
				}
			})
			t.Run("lock file removed, and another run", func(t *testing.T) {
				dir := in("taken")
				var before []string
				_, err := lossOfLogdir(t, dir, save, func() {
					sessiontest.MustNoErr(t, os.Remove(filepath.Join(dir, logdir.LockFile)))
					mustHold(t, dir)
					before = sessiontest.Files(t, dir, "model*")
				})
				var lost *logdir.LostError
				var locked *logdir.LockedError
				if !errors.As(err, &lost) || !errors.As(err, &locked) || lost.Place != "" {
					t.Errorf("Run = %v", err)
				}
				if diff := cmp.Diff(before, sessiontest.Files(t, dir, "model*")); diff != "" {
					t.Errorf("the other's logdir has changed (-before +after):\n%s", diff)
				}
				if _, err := os.Stat(filepath.Join(dir, report.JSONName)); err == nil {
					t.Error("there is a report in the other's logdir")
				}
			})
			t.Run("moved, and another run", func(t *testing.T) {
				dir := in("moved")
				_, err := lossOfLogdir(t, dir, save, func() {
					sessiontest.MustNoErr(t, os.Rename(dir, in("elsewhere")))
					sessiontest.MustNoErr(t, os.Mkdir(dir, 0o777))
					mustHold(t, dir)
					for _, name := range []string{"model.ckpt-2.index", "model.ckpt-0.index"} {
						sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, name), []byte("the other's"), 0o666))
					}
				})
				var lost *logdir.LostError
				if !errors.As(err, &lost) || !strings.Contains(err.Error(), "was moved") {
					t.Errorf("Run = %v", err)
				}
				if diff := cmp.Diff([]string{"model.ckpt-0.index", "model.ckpt-2.index", logdir.LockFile}, sessiontest.Files(t, dir, "*")); diff != "" {
					t.Errorf("the other's logdir has changed (-want +got):\n%s", diff)
				}
				if lost.Place == "" {
					t.Skip("this system does not say where a folder is")
				}
				step3(in("elsewhere"))
				if _, err := os.Stat(in("elsewhere", report.JSONName)); err != nil {
					t.Error(err)
				}
				mustHold(t, in("elsewhere")) // it was released
			})
			t.Run("deleted", func(t *testing.T) {
				dir := in("deleted")
				log, err := lossOfLogdir(t, dir, save, func() { sessiontest.MustNoErr(t, os.RemoveAll(dir)) })
				sessiontest.MustNoErr(t, err)
				if strings.Count(log, "logdir was deleted") != 1 {
					t.Errorf("log %s", log)
				}
				step3(dir)
				for _, name := range []string{"own", "*tfevents*"} {
					if len(sessiontest.Files(t, dir, name)) != 1 {
						t.Errorf("no new %s in %v", name, sessiontest.Files(t, dir, "*"))
					}
				}
			})
			t.Run("deleted, and something in its place", func(t *testing.T) {
				dir := in("replaced")
				_, err := lossOfLogdir(t, dir, save, func() {
					sessiontest.MustNoErr(t, os.RemoveAll(dir))
					sessiontest.MustNoErr(t, os.Mkdir(dir, 0o777))
					sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, "thesis"), nil, 0o666))
				})
				var lost *logdir.LostError
				if !errors.As(err, &lost) || lost.Place != "" {
					t.Errorf("Run = %v", err)
				}
				if diff := cmp.Diff([]string{"thesis"}, sessiontest.Files(t, dir, "*")); diff != "" {
					t.Errorf("the folder has changed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// deletingFS deletes a folder before its nth operation, once it is armed.
type deletingFS struct {
	ckptfmt.FS
	dir   string
	n     int
	armed bool
}

func (d *deletingFS) step() {
	if !d.armed {
		return
	}
	if d.n--; d.n == 0 {
		os.RemoveAll(d.dir)
	}
}

func (d *deletingFS) Create(name string) (ckptfmt.File, error) { d.step(); return d.FS.Create(name) }
func (d *deletingFS) Rename(from, to string) error             { d.step(); return d.FS.Rename(from, to) }
func (d *deletingFS) Remove(name string) error                 { d.step(); return d.FS.Remove(name) }
func (d *deletingFS) Mkdir(name string) error                  { d.step(); return d.FS.Mkdir(name) }
func (d *deletingFS) SyncDir(name string) error                { d.step(); return d.FS.SyncDir(name) }

// A logdir that is deleted at any moment of a save is made again by nobody but the
// lock, so the run continues and ends with its checkpoint.
func TestLogdirDeletedDuringSave(t *testing.T) {
	for name, form := range map[string]struct {
		format checkpoint.Format
		shards int
	}{
		"whole":      {checkpoint.FormatV2, 1},
		"sharded":    {checkpoint.FormatV2, 2},
		"V1":         {checkpoint.FormatV1, 1},
		"V1 sharded": {checkpoint.FormatV1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := filepath.Join(sessiontest.MemoryDir(t), "logdir")
				disk := &deletingFS{FS: atomicfile.OrOS(nil), dir: dir, n: n}
				synctest.Test(t, func(t *testing.T) {
					m := sessiontest.Counter()
					sv := newSupervisor(m, dir, 2)
					sv.Saver = &checkpoint.Saver{FS: disk, Shards: form.shards, Format: form.format}
					err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
						disk.armed = true
						_, _ = sv.Save(ctx) // as it may be: it is the last one that counts
						disk.armed = false
						return sv.StepDone(ctx, m.Step())
					})
					if err != nil {
						t.Errorf("deleted before operation %d: %v", n, err)
					}
					if _, err := ckptdir.Find(filepath.Join(dir, "model.ckpt-1")); err != nil {
						t.Errorf("deleted before operation %d: no checkpoint: %v, only %v", n, err, sessiontest.Files(t, dir, "*"))
					}
				})
				if disk.n > 0 || t.Failed() {
					return
				}
			}
		})
	}
}

// A logdir that is deleted while the session is prepared, or in the moment in which the
// events file is made, and once more when it was made again, is made by its lock alone.
func TestLogdirDeletedBeforeEvents(t *testing.T) {
	for _, late := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "log")
		deleted := false
		remove := func() {
			if !deleted {
				deleted = true
				sessiontest.MustNoErr(t, os.RemoveAll(dir))
			}
		}
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 2)
		sv.Saver = &checkpoint.Saver{}
		again := 0
		sv.OnRelock = func() {
			if again++; again == 1 {
				sessiontest.MustNoErr(t, os.RemoveAll(dir))
			}
		}
		sv.NewSession = func(ctx context.Context) (session.Session, error) {
			if late {
				sv.Saver.FS = removing{atomicfile.OrOS(nil), remove}
			} else {
				remove()
			}
			return m.NewSession(ctx)
		}
		if err := sv.Run(t.Context(), stepsTo(m, sv, 3)); err != nil || !deleted {
			t.Errorf("Run = %v", err)
		}
		for _, name := range []string{logdir.LockFile, "events.out.tfevents.*", "model.ckpt-3.index"} {
			if found, err := filepath.Glob(filepath.Join(dir, name)); err != nil || len(found) != 1 {
				t.Errorf("%s: %v, %v", name, found, err)
			}
		}
	}
}

// removing is a disk on which somebody deletes the logdir right before a file is made.
type removing struct {
	atomicfile.FS
	remove func()
}

func (r removing) Create(name string) (atomicfile.File, error) {
	r.remove()
	return r.FS.Create(name)
}

// The pause before another session is the run's, too: nobody else gets the logdir, and one
// that is deleted in it is made again, with what the program keeps there.
func TestLockOutlivesSessions(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "log")
			m := sessiontest.Counter()
			sv := newSupervisor(m, dir, 2)
			sv.MaxRestarts = 1
			relocked := 0
			sv.OnRelock = func() { relocked++ }
			pause := func() {
				time.Sleep(firstRestart / 2)
				var locked *logdir.LockedError
				if err := logdir.Check(dir); !errors.As(err, &locked) {
					t.Errorf("in the pause: %v; want that the logdir is in use", err)
				}
				if deleted {
					sessiontest.MustNoErr(t, os.RemoveAll(dir))
				}
			}
			sessions := 0
			err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
				if sessions++; sessions > 1 {
					return stepsTo(m, sv, 5)(ctx, s)
				}
				go pause()
				return errors.Join(stepsTo(m, sv, 3)(ctx, s), session.ErrUnavailable)
			})
			if want := map[bool]int{true: 1}[deleted]; err != nil || sessions != 2 || relocked != want {
				t.Errorf("Run = %v after %d sessions; OnRelock was called %d times, want %d", err, sessions, relocked, want)
			}
			sessiontest.MustNoErr(t, logdir.Check(dir))
		})
	}
}
