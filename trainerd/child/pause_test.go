//go:build unix

package child

import (
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

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
	lock "github.com/trainerd/trainerd/trainerd/logdir"
)

// pauses notes when a pause begins and ends.
type pauses struct {
	nobody
	said []bool
}

func (p *pauses) Paused(on bool) { p.said = append(p.said, on) }

// A program that ends during a pause, as by lack of memory, starts again when the pause is
// over. Meanwhile nobody else takes the logdir, although its lock file was removed.
func TestPauseOutlivesProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		starts := 0
		sv, _ := simulate(t, func(p *simProgram) int {
			program, starts = p, starts+1
			p.say("step=%d", starts)
			p.sleep(time.Hour)
			return 0
		})
		seen := &pauses{}
		sv.Observer = seen
		_, end := begin(t, sv)
		pass(time.Second)
		childtest.Must(t, sv.Pause(t.Context()))
		program.end(-1, syscall.SIGKILL)
		pass(10 * time.Minute)
		if starts != 1 {
			t.Errorf("%d starts during the pause", starts)
		}
		childtest.Must(t, sv.Pause(t.Context()))
		childtest.Must(t, os.Remove(filepath.Join(sv.Logdir, lock.LockFile)))
		pass(time.Minute)
		if err := lock.Check(sv.Logdir); !is[*lock.LockedError](err) {
			t.Errorf("another process may take the logdir: %v", err)
		}
		childtest.Must(t, sv.Resume(t.Context()))
		if exit, err := end(); err != nil || exit.Cause != Completed || starts != 2 {
			t.Errorf("Run = %+v, %v after %d starts", exit, err, starts)
		}
		if want := []bool{true, true, false}; !slices.Equal(seen.said, want) {
			t.Errorf("the observer was told %v, want %v", seen.said, want)
		}
	})
}

// A paused program that is stopped saves first. It cannot save, nor be paused, when
// that would not work.
func TestPauseAndSaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		sv, _ := simulate(t, func(p *simProgram) int {
			program = p
			p.say("step=7")
			for !slices.Contains(p.signals(), syscall.SIGUSR1) {
				time.Sleep(time.Second)
			}
			childtest.Write(t, p.variable("TRAINERD_LOGDIR")+"/ckpt-7", "weights")
			p.sleep(time.Hour)
			return 0
		})
		sv.SaveSignal = syscall.SIGUSR1
		stop, end := begin(t, sv)
		pass(time.Second)
		childtest.Must(t, sv.Pause(t.Context()))
		if _, err := sv.Save(t.Context()); !errors.Is(err, errPaused) {
			t.Errorf("Save in a pause: %v", err)
		}
		stop()
		pass(time.Millisecond)
		if err := sv.Pause(t.Context()); !errors.Is(err, errEnding) {
			t.Errorf("Pause during a stop: %v", err)
		}
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if got, want := program.signals(), []syscall.Signal{system.SigStop, system.SigCont, syscall.SIGUSR1, system.SigTerm, system.SigCont}; !slices.Equal(got, want) {
			t.Errorf("it got %v, want %v", got, want)
		}
	})
}

// A pause outlives its chief: the worker that takes its place waits for the end of it.
func TestPauseOutlivesChief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var program *simProgram
		sv, log := simulate(t, func(p *simProgram) int {
			program = p
			p.sleep(time.Hour)
			return 0
		})
		sv.Nodes, sv.Node, sv.Grace = 2, 1, time.Minute
		release := lead(t, sv.Logdir)
		seen := &pauses{}
		sv.Observer = seen
		stop, end := begin(t, sv)
		pass(10 * time.Second)
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
		job := n.job()
		job.Paused = true
		childtest.Must(t, writeJSON(nil, n.jobFile(), job))
		pass(10 * time.Second)
		if got := program.signals(); !slices.Equal(got, []syscall.Signal{system.SigStop}) {
			t.Errorf("the worker's program got %v", got)
		}
		if got := ChiefNode(sv.Logdir); got != 0 {
			t.Errorf("the chief is node %d, want 0", got)
		}
		release()
		pass(time.Minute)
		if got := ChiefNode(sv.Logdir); got != 1 {
			t.Errorf("the new chief is node %d, want 1", got)
		}
		if got := n.job(); !got.Paused || got.Phase != nodeEnded {
			t.Errorf("the new chief says %+v", got)
		}
		childtest.Must(t, sv.Resume(t.Context()))
		pass(time.Minute)
		if got := n.job(); got.Paused || got.Phase != nodeRunning || got.Attempt != 1 {
			t.Errorf("once it is resumed, the new chief says %+v", got)
		}
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if want := []bool{true, true, false}; !slices.Equal(seen.said, want) || !strings.Contains(log.String(), "takes its place") {
			t.Errorf("the observer was told %v, want %v; the log:\n%s", seen.said, want, log)
		}
	})
}

// A pause outlives its chief also where no worker takes its place, but a trainerd that has
// just come; one that was stopped has ended the pause.
func TestPauseOutlivesAll(t *testing.T) {
	for left, waits := range map[phase]bool{nodeRunning: true, nodeEnded: true, jobStopped: false} {
		synctest.Test(t, func(t *testing.T) {
			starts := 0
			sv, log := simulate(t, func(*simProgram) int { starts++; return 0 })
			sv.Nodes = 2
			n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
			childtest.Must(t, os.MkdirAll(n.dir, 0o777))
			childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: start{"elsewhere/7/1", 3}, Phase: left, Paused: true}))
			_, end := begin(t, sv)
			pass(time.Hour)
			if (starts == 0) != waits {
				t.Errorf("after a chief that had %s the program was started %d times; log:\n%s", left, starts, log)
			}
			if waits {
				childtest.Must(t, sv.Resume(t.Context()))
			}
			if exit, err := end(); err != nil || exit.Cause != Completed || starts != 1 {
				t.Errorf("Run = %+v, %v after %d starts", exit, err, starts)
			}
		})
	}
}

// A pause that is asked for between two starts holds the next one, and a stop ends it there.
func TestPauseBetweenStarts(t *testing.T) {
	for _, resumed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			starts := 0
			sv, _ := simulate(t, func(p *simProgram) int {
				if starts++; starts == 1 {
					return 1
				}
				return 0
			})
			sv.Restarts.Backoff = time.Minute
			seen := &pauses{}
			sv.Observer = seen
			stop, end := begin(t, sv)
			pass(time.Second)
			childtest.Must(t, sv.Pause(t.Context()))
			pass(time.Hour)
			if starts != 1 || !slices.Equal(seen.said, []bool{true}) {
				t.Errorf("%d starts; the observer was told %v", starts, seen.said)
			}
			want := Completed
			if !resumed {
				want = Stopped
				stop()
			} else {
				childtest.Must(t, sv.Resume(t.Context()))
			}
			if exit, err := end(); err != nil || exit.Cause != want {
				t.Errorf("Run = %+v, %v", exit, err)
			}
		})
	}
}

// A pause is not a hang, however long it is: the time without a step begins with its end, also
// where another chief has begun it.
func TestPauseIsNoHang(t *testing.T) {
	for _, takesOver := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var starts atomic.Int32
			sv, log := simulate(t, func(p *simProgram) int {
				p.say("step=%d", starts.Add(1))
				p.sleep(time.Hour)
				return 0
			})
			sv.HangAfter = time.Minute
			if takesOver {
				sv.Nodes, sv.Node, sv.Grace = 2, 1, time.Minute
				release := lead(t, sv.Logdir)
				begin(t, sv)
				pass(10 * time.Second)
				n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
				job := n.job()
				job.Paused = true
				childtest.Must(t, writeJSON(nil, n.jobFile(), job))
				pass(10 * time.Second)
				release()
			} else {
				begin(t, sv)
				pass(50 * time.Second)
				childtest.Must(t, sv.Pause(t.Context()))
			}
			pass(10 * time.Minute)
			before := starts.Load()
			childtest.Must(t, sv.Resume(t.Context()))
			pass(55 * time.Second)
			if strings.Contains(log.String(), "reported no step for too long") || takesOver == (starts.Load() == before) {
				t.Errorf("%d starts; the log:\n%s", starts.Load(), log)
			}
			pass(30 * time.Second)
			if !strings.Contains(log.String(), "reported no step for too long") {
				t.Errorf("a hang after the pause goes unnoticed; the log:\n%s", log)
			}
		})
	}
}

// A pause that is asked for between two starts while the disk is full, as when somebody is to
// make room, is told to the other nodes once there is room, and so is its end. Until then the
// answers say that a chief in the place of this one would not know it.
func TestPauseOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		n := &nodes{}
		sv, log := simulate(t, func(*simProgram) int { return 1 })
		picky(sv, func(op, below string) bool {
			return full.Load() && op == "create" && strings.HasPrefix(below, nodesDir)
		})
		sv.Nodes, sv.Restarts.Backoff, n.dir = 2, time.Hour, filepath.Join(sv.Logdir, nodesDir)
		begin(t, sv)
		pass(5 * time.Minute)
		for _, paused := range []bool{true, false} {
			do, done := sv.Resume, "is resumed on the chief's node only"
			if paused {
				do, done = sv.Pause, "is paused on the chief's node only"
			}
			full.Store(true)
			for range 2 { // asked again, it is not taken for done
				untold, ok := errors.AsType[*UnpublishedError](do(t.Context()))
				if !ok || untold.Paused != paused || !errors.Is(untold, syscall.EIO) || !strings.Contains(untold.Error(), done) {
					t.Errorf("answer to pause %v on the full disk: %v", paused, untold)
				}
			}
			before := n.job().Paused
			full.Store(false)
			pass(2 * time.Second)
			if job := n.job(); before == paused || job.Paused != paused || job.Phase != nodeEnded {
				t.Errorf("told on the full disk: %v; then %+v; log:\n%s", before, job, log)
			}
			if err := do(t.Context()); paused && err != nil {
				t.Errorf("once there is room: %v", err)
			}
		}
	})
}

// TestPauseOfRunningProgramOnFullDisk pauses and resumes a program that runs while the disk takes
// nothing for the other nodes: the answers say that they do not know.
func TestPauseOfRunningProgramOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		sv, log := simulate(t, func(p *simProgram) int {
			p.sleep(time.Hour)
			return 0
		})
		picky(sv, func(op, below string) bool {
			return full.Load() && op == "create" && strings.HasPrefix(below, nodesDir)
		})
		sv.Nodes = 2
		begin(t, sv)
		pass(5 * time.Second)
		full.Store(true)
		for _, paused := range []bool{true, false} {
			do := sv.Resume
			if paused {
				do = sv.Pause
			}
			if untold, ok := errors.AsType[*UnpublishedError](do(t.Context())); !ok || untold.Paused != paused {
				t.Errorf("answer to pause %v on the full disk: %v; log:\n%s", paused, untold, log)
			}
		}
	})
}
