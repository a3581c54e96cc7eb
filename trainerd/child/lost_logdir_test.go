//go:build unix

package child

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestLogdirIsLost takes the logdir away from a program that runs.
func TestLogdirIsLost(t *testing.T) {
	const lock = "trainerd.lock"
	for name, tt := range map[string]struct {
		harm  func(t *testing.T, logdir string)
		taken bool // by another run
		saved bool // the program was given the time
	}{
		"moved": {func(t *testing.T, logdir string) { childtest.Must(t, os.Rename(logdir, logdir+"2")) }, false, false},
		"another run": {func(t *testing.T, dir string) {
			// At once, or the run makes the lock file again first.
			elsewhere := t.TempDir()
			other, err := logdir.Acquire(elsewhere, nil)
			childtest.Must(t, err)
			t.Cleanup(func() { other.Release() })
			childtest.Must(t, os.Rename(filepath.Join(elsewhere, lock), filepath.Join(dir, lock)))
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, "polite ckpt-2")
			done := make(chan error, 1)
			go func() {
				_, err := sv.Run(t.Context())
				done <- err
			}()
			out.await(t, "ready")
			tt.harm(t, sv.Logdir)
			err := <-done
			var lost *logdir.LostError
			if !errors.As(err, &lost) || is[*logdir.LockedError](err) != tt.taken {
				t.Errorf("Run = %v", err)
			}
			if _, err := os.Stat(filepath.Join(sv.Logdir, "ckpt-2")); (err == nil) != tt.saved {
				t.Errorf("the program's last checkpoint: %v", err)
			}
		})
	}
}

// TestLostOnce has a logdir that was moved, and another folder of its name later: the
// program keeps its time to save where the logdir is now.
func TestLostOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		sv, _ := simulate(t, func(p *simProgram) int {
			program = p
			p.sleep(time.Hour)
			p.sleepDeaf(time.Minute)
			return 0
		})
		ends := &seesEnds{}
		sv.Observer = ends
		_, end := begin(t, sv)
		time.Sleep(10 * time.Second)
		childtest.Must(t, os.Rename(sv.Logdir, sv.Logdir+"2"))
		time.Sleep(10 * time.Second)
		childtest.Must(t, os.Mkdir(sv.Logdir, 0o777))
		if _, err := end(); !is[*logdir.LostError](err) {
			t.Errorf("Run = %v", err)
		}
		if len(ends.seen) != 1 || ends.seen[0].Cause != Stopped || ends.again[0] {
			t.Errorf("the observer saw %+v", ends)
		}
		if got := program.signals(); slices.Contains(got, syscall.SIGKILL) || !slices.Contains(got, syscall.SIGTERM) {
			t.Errorf("it got %v", got)
		}
	})
}

// TestLockFileIsRemoved has somebody remove the lock file of a run: it is made again, once,
// and what the run knows stays.
func TestLockFileIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-1"), "weights")
			p.say("step=1")
			p.sleep(time.Minute)
			return 0
		})
		sv.Config = []byte("# a config\n")
		_, end := begin(t, sv)
		time.Sleep(10 * time.Second)
		childtest.Must(t, os.Remove(filepath.Join(sv.Logdir, logdir.LockFile)))
		time.Sleep(10 * time.Second)
		childtest.Write(t, filepath.Join(sv.Logdir, ConfigName), "# a note")
		time.Sleep(10 * time.Second)
		if got := childtest.Read(t, filepath.Join(sv.Logdir, ConfigName)); got != "# a note" {
			t.Errorf("the config has %q", got)
		}
		if exit, err := end(); err != nil || exit.Cause != Completed || strings.Count(log.String(), "msg=saved") != 1 {
			t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
		}
	})
}

// TestLogdirDeletedWithoutReport has a logdir that is deleted before the program has
// reported anything, in the start after a checkpoint was set aside: the events begin at the
// first step, and nothing is moved back.
func TestLogdirDeletedWithoutReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sv, log := simulate(t, func(p *simProgram) int {
			if starts++; starts == 3 {
				deleteLogdir(p.variable("TRAINERD_LOGDIR"))
				p.sleep(10 * time.Second)
			}
			return 1
		})
		sv.Restarts.Max = 2
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-10"), "weights")
		if _, err := sv.Run(t.Context()); !is[*ExitError](err) || starts != 3 {
			t.Errorf("Run = %v after %d starts", err, starts)
		}
		if got := marks(t, sv.Logdir); len(got) == 0 || got[0] != "START@1" {
			t.Errorf("marks %v", got)
		}
		if !strings.Contains(log.String(), "moved it aside") || strings.Contains(log.String(), "cannot move the checkpoint back") {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// TestLostBeforeStart has another host take the logdir while the checkpoint to start from is
// chosen: the program does not start.
func TestLostBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { t.Error("the program was started"); return 0 })
		sv.Observer = whenStarted{nobody{}, func() {
			childtest.Write(t, filepath.Join(sv.Logdir, logdir.LockFile), `{"host":"elsewhere","pid":1,"start":"2026-01-02T03:04:05Z"}`)
		}}
		if exit, err := sv.Run(t.Context()); !is[*logdir.LostError](err) || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// A program whose logdir was deleted, or emptied, is asked at a stop for what it had
// saved, and the config of the run and its events are there again.
func TestLogdirDeleted(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, dir string){
		"deleted": func(_ *testing.T, dir string) { deleteLogdir(dir) },
		"emptied": func(t *testing.T, dir string) {
			entries, err := os.ReadDir(dir)
			childtest.Must(t, err)
			for _, e := range entries {
				childtest.Must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, "onsignal ckpt-2 steps 1 2;onsignal ckpt-2")
			sv.SaveSignal, sv.Config = syscall.SIGUSR1, []byte("# a config\n")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := sv.Run(ctx)
				done <- err
			}()
			out.await(t, "ready")
			if _, err := sv.Save(ctx); err != nil {
				t.Fatal(err)
			}
			out.await(t, "ready")
			remove(t, sv.Logdir)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if _, err := os.Stat(filepath.Join(sv.Logdir, ConfigName)); err == nil || time.Now().After(deadline) {
					break
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			for _, name := range []string{"ckpt-2", ConfigName, "events.out.tfevents.*"} {
				if found, err := filepath.Glob(filepath.Join(sv.Logdir, name)); err != nil || len(found) != 1 {
					t.Errorf("%s: %v, %v", name, found, err)
				}
			}
		})
	}
}

// deleteLogdir deletes the logdir of a run, which may be writing there.
func deleteLogdir(logdir string) {
	for os.RemoveAll(logdir) != nil {
	}
}

// A logdir is deleted while the disk takes nothing: the training continues, and its curve
// is there once the disk works again, with what had waited.
func TestLogdirDeletedOnBadDisk(t *testing.T) {
	sv, out := supervise(t, "steps 1 2;say ready;await go;steps 3 4")
	broken, log := new(atomic.Bool), newScreen()
	sv.FS, sv.Config = failingDisk{atomicfile.OrOS(nil), broken}, []byte("# a config\n")
	sv.Log = slog.New(slog.NewTextHandler(log, nil))
	second := make(chan bool, 1)
	sv.Observer = whenReported{nobody{}, func(r *Report) {
		if broken.Store(r.Step < 4); r.Step == 2 {
			second <- true
		}
	}}
	done := make(chan error, 1)
	go func() {
		_, err := sv.Run(t.Context())
		done <- err
	}()
	out.await(t, "ready")
	<-second
	deleteLogdir(sv.Logdir)
	await(t, "the logdir is made again", func() bool {
		_, err := os.Stat(filepath.Join(sv.Logdir, logdir.LockFile)) // the log may speak of a lock that was removed again
		return err == nil && strings.Contains(log.String(), "config could not be kept")
	})
	childtest.Write(t, filepath.Join(sv.Logdir, "go"), "x")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("the curve has steps %v, want 1 to 4", got)
	}
	if got := marks(t, sv.Logdir); !slices.Contains(got, "START@3") {
		t.Errorf("marks %v", got)
	}
}

// whenReported calls a function with each report.
type whenReported struct {
	nobody
	do func(r *Report)
}

func (w whenReported) Reported(r *Report) { w.do(r) }

// The own run of trainerd's events is made again in a logdir that was deleted.
func TestLogdirDeletedWithOwnRun(t *testing.T) {
	const theirs = "events.out.tfevents.1700000000.h"
	sv, out := supervise(t, "write "+theirs+";steps 1 2;say ready;await go;steps 3 4")
	done := make(chan error, 1)
	go func() {
		_, err := sv.Run(t.Context())
		done <- err
	}()
	out.await(t, "ready")
	await(t, "there is a run of its own", func() bool { return len(marks(t, filepath.Join(sv.Logdir, ownRun))) > 0 })
	deleteLogdir(sv.Logdir)
	await(t, "the logdir is made again", func() bool { return len(marks(t, filepath.Join(sv.Logdir, ownRun))) > 0 })
	childtest.Write(t, filepath.Join(sv.Logdir, "go"), "x")
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := curve(t, filepath.Join(sv.Logdir, ownRun), "loss"); !slices.Equal(got, []int64{3, 4}) {
		t.Errorf("the curve has steps %v, want 3 and 4", got)
	}
}

// The chief of several nodes makes their folder again in a logdir that was deleted, for
// the workers that come, and starts its program again there.
func TestNodesLogdirDeleted(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	n := &nodes{dir: filepath.Join(logdir, nodesDir)}
	chief := join(t, logdir, 0, "steps 1 2;say ready;await go;exit 1|steps 1 4")
	chief.await(t, "ready")
	before := n.job()
	deleteLogdir(logdir)
	await(t, "the logdir is made again", func() bool { return n.job().Phase == nodeRunning })
	if got := n.job(); got.start != before.start {
		t.Errorf("the start is %+v by now, was %+v", got.start, before.start)
	}
	childtest.Write(t, filepath.Join(logdir, "go"), "x")
	if exit, err := chief.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
		t.Errorf("Run = %+v, %v", exit, err)
	}
}

// A folder that cannot be made again in a logdir that was deleted is logged.
func TestLogdirDeletedAndNoFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deleted atomic.Bool
		sv, log := simulate(t, func(p *simProgram) int {
			childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "events.out.tfevents.1.theirs"), "x")
			for step := 1; p.sleep(time.Second); step++ {
				if p.say("step=%d", step); step == 5 {
					deleted.Store(true)
					deleteLogdir(p.variable("TRAINERD_LOGDIR"))
				}
			}
			return 0
		})
		sv.Checkpoints = ""
		picky(sv, func(op, below string) bool { return op == "mkdir" && below == ownRun && deleted.Load() })
		stop, end := begin(t, sv)
		time.Sleep(time.Minute)
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped || !strings.Contains(log.String(), "a folder cannot be made again") {
			t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
		}
	})
}

// A logdir that is deleted once it is locked, before anything is in it, is made again by its
// lock alone.
func TestLogdirDeletedAtOnce(t *testing.T) {
	sv, _ := supervise(t, "steps 1 3")
	deleted := false
	picky(sv, func(op, _ string) bool {
		if op == "create" && !deleted {
			deleted = true
			deleteLogdir(sv.Logdir)
		}
		return false
	})
	if exit, err := sv.Run(t.Context()); err != nil || exit.Cause != Completed || !deleted {
		t.Errorf("Run = %+v, %v", exit, err)
	}
	if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(1, 3)) {
		t.Errorf("the curve has steps %v", got)
	}
	if _, err := os.Stat(filepath.Join(sv.Logdir, logdir.LockFile)); err != nil {
		t.Error(err)
	}
}

// A worker does not make a logdir that is gone: it would lack the chief's lock.
func TestFollowerMakesNoLogdir(t *testing.T) {
	sv, _ := supervise(t, "steps 1 3")
	sv.Nodes, sv.Node = 2, 1
	if _, _, err := sv.follow(t.Context(), logdir.Holder{}); !is[*logdir.LostError](err) {
		t.Errorf("follow: %v", err)
	}
	if _, err := os.Stat(sv.Logdir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the logdir: %v", err)
	}
}
