//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// begin starts a run in a bubble, and returns what waits for its end.
func begin(t *testing.T, sv *Supervisor) (stop func(), end func() (Exit, error)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	var exit Exit
	var err error
	go func() {
		defer close(done)
		exit, err = sv.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	return stop, func() (Exit, error) { <-done; return exit, err }
}

// TestRequestsWithoutProgram has requests in the pause before a start: those about
// checkpoints are fulfilled, those to the program are not until it runs.
func TestRequestsWithoutProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program atomic.Pointer[simProgram]
		sv, _ := simulate(t, func(p *simProgram) int {
			if program.Store(p); p.variable("TRAINERD_ATTEMPT") == "1" {
				return 1
			}
			p.sleep(time.Hour)
			return 0
		})
		childtest.Write(t, sv.Logdir+"/ckpt-3", "weights")
		sv.SaveSignal, sv.Restarts.Backoff = syscall.SIGUSR1, time.Minute
		if sv.Stats().Restarts != 0 {
			t.Errorf("Stats before Run = %+v", sv.Stats())
		}
		begin(t, sv)
		time.Sleep(time.Second)
		_, err := sv.Save(t.Context())
		for name, err := range map[string]error{"save": err, "resume": sv.Resume(t.Context())} {
			if !errors.Is(err, ErrNotRunning) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if c, err := sv.Keep(t.Context(), 3); err != nil || c.Step != 3 {
			t.Errorf("Keep = %+v, %v", c, err)
		}
		childtest.Stat(t, sv.Logdir+"/ckpt-3.pin")
		childtest.Must(t, sv.Note(t.Context(), "note", "x"))
		time.Sleep(2 * time.Minute)
		if got := sv.Stats().Restarts; got != 1 {
			t.Errorf("%d restarts", got)
		}
		childtest.Must(t, sv.Pause(t.Context()))
		childtest.Must(t, sv.Resume(t.Context()))
		if got := program.Load().signals(); !slices.Equal(got, []syscall.Signal{system.SigStop, system.SigCont}) {
			t.Errorf("once it runs, it got %v", got)
		}
		if got := curve(t, sv.Logdir, "note"); !slices.Equal(got, []int64{0}) {
			t.Errorf("notes at %v", got)
		}
	})
}

// TestSaveInVain has programs that do not save when they are asked to.
func TestSaveInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			for p.say("step=1"); p.sleep(time.Second) && len(p.signals()) < 2; {
			}
			return 0
		})
		if _, err := sv.Save(t.Context()); !errors.Is(err, errCannotSave) {
			t.Errorf("without a signal: %v", err)
		}
		sv.SaveSignal = syscall.SIGUSR1
		_, end := begin(t, sv)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := sv.Save(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing comes: %v", err)
		}
		if _, err := sv.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "without writing a checkpoint") {
			t.Errorf("it ends: %v", err)
		}
		if exit, err := end(); err != nil || exit.Cause != Completed {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}

// TestSaveInVainTwice has a program that ends, whenever it is asked to save, and is started
// again.
func TestSaveInVainTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sv, _ := simulate(t, func(p *simProgram) int {
			starts++
			for p.say("step=1"); p.sleep(time.Second) && len(p.signals()) == 0; {
			}
			return 2 - starts
		})
		sv.SaveSignal, sv.Restarts.Max = syscall.SIGUSR1, 1
		_, end := begin(t, sv)
		for range 2 {
			time.Sleep(time.Hour) // which a restart does not take
			if _, err := sv.Save(t.Context()); err == nil || !strings.Contains(err.Error(), "without writing a checkpoint") {
				t.Errorf("it ends: %v", err)
			}
		}
		if exit, err := end(); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}

// slowObserver takes an hour for the end of a start.
type slowObserver struct{ nobody }

func (slowObserver) Ended(Exit, bool, time.Duration) { time.Sleep(time.Hour) }

// TestRequestsAtTheEnd has requests while the run is busy: it ends before it hears one, the caller
// does not wait for that, or is told so.
func TestRequestsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { return 0 })
		sv.Observer = slowObserver{}
		began := time.Now()
		begin(t, sv)
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), requestTimeout/2)
		defer cancel()
		if err := sv.Note(ctx, "note", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it is busy: %v", err)
		}
		if err := sv.Note(t.Context(), "note", "x"); err == nil || !strings.Contains(err.Error(), "waits for") {
			t.Errorf("it is busy for long: %v", err)
		}
		time.Sleep(time.Until(began.Add(time.Hour - requestTimeout/2)))
		if err := sv.Note(t.Context(), "note", "x"); !errors.Is(err, ErrNotRunning) {
			t.Errorf("it ends: %v", err)
		}
	})
}

// TestStopWhilePaused: a suspended program would not see SIGTERM.
func TestStopWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		sv, _ := simulate(t, func(p *simProgram) int {
			program = p
			p.say("step=1")
			p.sleep(time.Hour)
			p.sleepDeaf(time.Second) // it is suspended when SIGTERM comes
			return 0
		})
		sv.Checkpoints = ""
		stop, end := begin(t, sv)
		time.Sleep(time.Second)
		if err := sv.Pause(t.Context()); err != nil {
			t.Error(err)
		}
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if got, want := program.signals(), []syscall.Signal{system.SigStop, system.SigCont, system.SigTerm, system.SigCont}; !slices.Equal(got, want) {
			t.Errorf("it got %v, want %v", got, want)
		}
	})
}

// TestKeepOnBadDisk has a disk that does not take that a checkpoint is to be kept: who asks for
// that is told.
func TestKeepOnBadDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bad atomic.Bool
		sv, _ := simulate(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
		picky(sv, func(op, _ string) bool { return bad.Load() && op == "create" })
		childtest.Write(t, sv.Logdir+"/ckpt-3", "weights")
		begin(t, sv)
		pass(time.Second)
		bad.Store(true)
		if _, err := sv.Keep(t.Context(), 3); !errors.Is(err, syscall.EIO) {
			t.Errorf("Keep = %v", err)
		}
	})
}

// TestStopEndsThePause has a job on several nodes stopped in a pause: from then on it is not
// paused, for the other nodes either, while the program saves.
func TestStopEndsThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			p.sleep(time.Hour)
			p.sleepDeaf(time.Minute)
			return 0
		})
		sv.Nodes = 2
		stop, end := begin(t, sv)
		pass(time.Second)
		childtest.Must(t, sv.Pause(t.Context()))
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
		before := n.job()
		stop()
		pass(30 * time.Second)
		if after := n.job(); !before.Paused || after.Paused || !after.Ending {
			t.Errorf("before the stop the chief says %+v, and after it %+v", before, after)
		}
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
	})
}

// TestSignalsThatFail: a signal that the system does not deliver is logged; after its
// end, a program gets none.
func TestSignalsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			p.refuse(syscall.EPERM)
			p.say("step=1")
			p.sleep(time.Hour)
			return 0
		})
		sv.Checkpoints = ""
		stop, end := begin(t, sv)
		time.Sleep(time.Second)
		if err := sv.Pause(t.Context()); !errors.Is(err, syscall.EPERM) {
			t.Errorf("Pause: %v", err)
		}
		if err := sv.Resume(t.Context()); !errors.Is(err, syscall.EPERM) {
			t.Errorf("Resume: %v", err)
		}
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if !strings.Contains(log.String(), "cannot signal the program") {
			t.Errorf("the log does not say so:\n%s", log)
		}
	})
	ended := &simProgram{ended: make(chan struct{})}
	close(ended.ended)
	if err := (&process{alive: true, program: ended}).terminate(); err != nil {
		t.Errorf("terminate of one that has just ended: %v", err)
	}
	if err := (&process{program: ended}).send(system.SigTerm); err != nil {
		t.Errorf("send after the end: %v", err)
	}
	if err := (&process{program: ended}).sendLeader(system.SigTerm); !errors.Is(err, ErrNotRunning) {
		t.Errorf("sendLeader after the end: %v", err)
	}
}

// groupStays is a program that has ended, and whose group takes no notice of SIGTERM.
type groupStays struct{ *simProgram }

func (groupStays) GroupEnded() bool { return false }

// TestKilledGroup: once a group is killed, nobody waits for it any longer.
func TestKilledGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &process{on: &simulated{}, alive: true, terminating: true, killed: make(chan struct{}), program: groupStays{&simProgram{ended: make(chan struct{}), told: make(chan struct{})}}}
		begun := time.Now()
		time.AfterFunc(time.Minute, func() { close(a.killed) })
		if a.awaitGroup(false); time.Since(begun) != time.Minute {
			t.Errorf("it is waited for %v", time.Since(begun))
		}
	})
}

// TestAskedDuringFirstScan asks for something while a run reads the checkpoints that are there,
// which may take long: the answer says so, and comes at once.
func TestAskedDuringFirstScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { return 0 })
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-3"), "weights")
		var answers []error
		picky(sv, func(op, below string) bool {
			if op == "rename" && strings.HasPrefix(below, manifest.RecordsDir) && len(answers) == 0 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				answers = append(answers, sv.Pause(ctx))
			}
			return false
		})
		if exit, err := sv.Run(t.Context()); err != nil || exit.Cause != Completed {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if len(answers) != 1 || !errors.Is(answers[0], errScanning) {
			t.Errorf("the answers are %v", answers)
		}
	})
}

// TestSaveIsNewer has a save asked for while a checkpoint that the program has written before is
// not found yet: the answer is the one that it writes then, if the other lacks steps.
func TestSaveIsNewer(t *testing.T) {
	for before, want := range map[string]int64{"ckpt-step3": 10, "ckpt-step9": 9} {
		synctest.Test(t, func(t *testing.T) {
			write := func(p *simProgram, name string) {
				name = filepath.Join(p.variable("TRAINERD_LOGDIR"), name)
				childtest.Write(t, name, "weights")
				childtest.Must(t, os.Chtimes(name, time.Now(), time.Now()))
			}
			sv, log := simulate(t, func(p *simProgram) int {
				for step := range 10 {
					p.say("step=%d", step)
				}
				p.sleep(time.Minute)
				write(p, before)
				for !slices.Contains(p.signals(), syscall.SIGUSR1) {
					time.Sleep(time.Second)
				}
				p.sleep(10 * time.Second)
				write(p, "ckpt-step10")
				p.sleep(time.Minute)
				return 0
			})
			sv.SaveSignal = syscall.SIGUSR1
			_, end := begin(t, sv)
			pass(time.Minute + 200*time.Millisecond)
			if c, err := sv.Save(t.Context()); err != nil || c.Step != want {
				t.Errorf("Save = step %d, %v; want step %d; log:\n%s", c.Step, err, want, log)
			}
			end()
		})
	}
}

// TestSaveDuringStop has a save asked for while the program is asked to save because it is to
// end: it gets one signal, and the answer is the one checkpoint.
func TestSaveDuringStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		sv, _ := simulate(t, func(p *simProgram) int {
			program = p
			p.say("step=7")
			for !slices.Contains(p.signals(), syscall.SIGUSR1) {
				time.Sleep(time.Second)
			}
			time.Sleep(10 * time.Second)
			childtest.Write(t, p.variable("TRAINERD_LOGDIR")+"/ckpt-7", "weights")
			p.sleep(time.Hour)
			return 0
		})
		sv.SaveSignal = syscall.SIGUSR1
		stop, end := begin(t, sv)
		pass(time.Second)
		stop()
		pass(2 * time.Second)
		if c, err := sv.Save(t.Context()); err != nil || c.Step != 7 {
			t.Errorf("Save = %+v, %v", c, err)
		}
		end()
		if got := slices.DeleteFunc(program.signals(), func(s syscall.Signal) bool { return s != syscall.SIGUSR1 }); len(got) != 1 {
			t.Errorf("it was asked to save %d times", len(got))
		}
	})
}
