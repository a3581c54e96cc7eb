//go:build unix

package child

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
		time.Sleep(time.Second)
		must(t, sv.Pause(t.Context()))
		program.end(-1, syscall.SIGKILL)
		time.Sleep(10 * time.Minute)
		if starts != 1 {
			t.Errorf("%d starts during the pause", starts)
		}
		must(t, sv.Pause(t.Context()))
		must(t, os.Remove(filepath.Join(sv.Logdir, lock.LockFile)))
		time.Sleep(time.Minute)
		if err := lock.Check(sv.Logdir); !is[*lock.LockedError](err) {
			t.Errorf("another process may take the logdir: %v", err)
		}
		must(t, sv.Resume(t.Context()))
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
			writeFile(t, p.variable("TRAINERD_LOGDIR")+"/ckpt-7", "weights")
			p.sleep(time.Hour)
			return 0
		})
		sv.SaveSignal = syscall.SIGUSR1
		stop, end := begin(t, sv)
		time.Sleep(time.Second)
		must(t, sv.Pause(t.Context()))
		if _, err := sv.Save(t.Context()); !errors.Is(err, errPaused) {
			t.Errorf("Save in a pause: %v", err)
		}
		stop()
		time.Sleep(time.Millisecond)
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
		time.Sleep(10 * time.Second)
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
		job := n.job()
		job.Paused = true
		must(t, writeJSON(n.jobFile(), job))
		time.Sleep(10 * time.Second)
		if got := program.signals(); !slices.Equal(got, []syscall.Signal{system.SigStop}) {
			t.Errorf("the worker's program got %v", got)
		}
		if got := ChiefNode(sv.Logdir); got != 0 {
			t.Errorf("the chief is node %d, want 0", got)
		}
		release()
		time.Sleep(time.Minute)
		if got := ChiefNode(sv.Logdir); got != 1 {
			t.Errorf("the new chief is node %d, want 1", got)
		}
		if got := n.job(); !got.Paused || got.Phase != nodeEnded {
			t.Errorf("the new chief says %+v", got)
		}
		must(t, sv.Resume(t.Context()))
		time.Sleep(time.Minute)
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
