//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
	lock "github.com/trainerd/trainerd/trainerd/logdir"
)

// TestCannotBegin has runs that cannot begin: no program is started, and the logdir is free
// for the next.
func TestCannotBegin(t *testing.T) {
	for name, tc := range map[string]struct {
		harm func(t *testing.T, sv *Supervisor)
		want string
	}{
		"no pattern":           {func(_ *testing.T, sv *Supervisor) { sv.Checkpoints = "[" }, "is not a pattern"},
		"the logdir is a file": {func(t *testing.T, sv *Supervisor) { childtest.Write(t, sv.Logdir, "x") }, "not a directory"},
		"the nodes are a file": {func(t *testing.T, sv *Supervisor) {
			sv.Nodes = 2
			childtest.Write(t, filepath.Join(sv.Logdir, nodesDir), "x")
		}, "not a directory"},
		"no events": {func(t *testing.T, sv *Supervisor) {
			childtest.Write(t, filepath.Join(sv.Logdir, "events.out.tfevents.1.theirs"), "x")
			picky(sv, func(op, name string) bool { return op == "mkdir" && name == ownRun })
		}, "input/output error"},
		"processes that stay":     {func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).left = []int{7} }, "processes [7] still write"},
		"no socket":               {func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).noSocket = errors.New("no socket") }, "no socket"},
		"another uses the logdir": {holdGroup, "still use logdir"},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(*simProgram) int { t.Errorf("%s: the program is started", name); return 0 })
			tc.harm(t, sv)
			if _, err := sv.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: Run = %v, want %q", name, err, tc.want)
			}
			if info, err := os.Stat(sv.Logdir); err == nil && info.IsDir() {
				if err := lock.Check(sv.Logdir); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// A worker that lacks something for a start tells the chief, and takes part in the next one.
func TestFollowerCannotStartNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := false
		sv, _ := simulate(t, func(p *simProgram) int {
			ran = p.variable("TRAINERD_ATTEMPT") == "2"
			return 0
		})
		sv.Nodes, sv.Node = 2, 1
		lead(t, sv.Logdir)
		sv.System.(*simulated).fails = syscall.EAGAIN
		_, end := begin(t, sv)
		pass(10 * time.Second)
		var got nodeState
		dir := filepath.Join(sv.Logdir, nodesDir)
		readJSON(filepath.Join(dir, "node1", "state.json"), &got)
		if got.Phase != nodeEnded || got.Cause != Failed || got.Attempt != 1 {
			t.Errorf("the chief is told %+v", got)
		}
		sv.System.(*simulated).fails = nil
		childtest.Must(t, writeJSON(nil, filepath.Join(dir, "job.json"), jobState{start: start{lifeOf(lock.Named(sv.Logdir)), 2}, Phase: nodeRunning}))
		pass(10 * time.Second)
		childtest.Must(t, writeJSON(nil, filepath.Join(dir, "job.json"), jobState{start: start{lifeOf(lock.Named(sv.Logdir)), 2}, Phase: jobComplete}))
		if exit, err := end(); err != nil || !ran {
			t.Errorf("Run = %+v, %v; the second start was made: %v", exit, err, ran)
		}
	})
}

// holdGroup holds the lock of the group of a run, as a process in another container does.
func holdGroup(t *testing.T, sv *Supervisor) {
	t.Helper()
	childtest.Must(t, os.MkdirAll(sv.Logdir, 0o777))
	held, err := lock.HoldGroup(sv.Logdir)
	childtest.Must(t, err)
	t.Cleanup(func() { held.Close() })
}

// TestStopWhileWaitingForProcesses has processes of an earlier start that take long to
// end: a stop does not wait for them.
func TestStopWhileWaitingForProcesses(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, sv *Supervisor){
		"known":   func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).left = []int{7} },
		"unknown": holdGroup,
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, nil)
			harm(t, sv)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			if _, err := sv.Run(ctx); !is[*lock.GroupError](err) {
				t.Errorf("%s: Run = %v", name, err)
			}
			if took := time.Since(begun); took < time.Second || took > time.Second+leftoverGrace {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}

// TestProcessesThatEndLate has a process of an earlier start that ends once it is told.
func TestProcessesThatEndLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { return 0 })
		s := &endsLate{simulated: sv.System.(*simulated), until: time.Now().Add(3 * time.Second)}
		sv.System = s
		if _, err := sv.Run(t.Context()); err != nil || time.Now().Before(s.until) {
			t.Errorf("Run = %v, before they ended", err)
		}
	})
}

// endsLate has leftovers for a while.
type endsLate struct {
	*simulated
	until time.Time
}

func (s *endsLate) Leftovers(string) []int {
	if time.Now().Before(s.until) {
		return []int{7}
	}
	return nil
}

var _ system.System = (*endsLate)(nil)

// TestProcessesThatCome has processes that hold the lock of the group, and are seen only
// when the program is about to be started.
func TestProcessesThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, nil)
		sv.System = &comesLate{simulated: sv.System.(*simulated)}
		holdGroup(t, sv)
		if _, err := sv.Run(t.Context()); !is[*lock.GroupError](err) || !strings.Contains(err.Error(), "processes [7]") {
			t.Errorf("Run = %v", err)
		}
	})
}

// TestLeftoversAreGivenTime has a process of an earlier start: it gets SIGTERM, and as much
// time as the program would have, but no more than it takes to save.
func TestLeftoversAreGivenTime(t *testing.T) {
	for _, tc := range []struct {
		grace  time.Duration
		endsOn syscall.Signal
		want   []syscall.Signal
		took   time.Duration
	}{
		{0, system.SigTerm, []syscall.Signal{system.SigTerm}, 0},
		{0, system.SigKill, []syscall.Signal{system.SigTerm, system.SigKill}, leftoverGrace},
		{time.Second, system.SigKill, []syscall.Signal{system.SigTerm, system.SigKill}, time.Second},
		{-1, system.SigKill, []syscall.Signal{system.SigKill}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(*simProgram) int { return 0 })
			left := &leftover{simulated: sv.System.(*simulated), endsOn: tc.endsOn}
			left.alive.Store(true)
			sv.System, sv.Grace = left, tc.grace
			begun := time.Now()
			if _, err := sv.Run(t.Context()); err != nil {
				t.Errorf("Run = %v", err)
			}
			if took := left.ended.Sub(begun); !slices.Equal(left.got, tc.want) || took != tc.took {
				t.Errorf("%+v: it got %v, and has ended after %v", tc, left.got, took)
			}
		})
	}
}

// TestLeftRunningIsSaid has a program that ends well and leaves a process, and one that
// leaves none: the log names the first.
func TestLeftRunningIsSaid(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, nil)
			left := &leftover{simulated: sv.System.(*simulated)}
			left.program = func(*simProgram) int { left.alive.Store(leaves); return 0 }
			sv.System = left
			exit, err := sv.Run(t.Context())
			if err != nil || exit.Cause != Completed || len(exit.Left) > 0 != leaves || len(left.got) > 0 {
				t.Errorf("Run = %+v, %v; signals %v", exit, err, left.got)
			}
			if strings.Contains(log.String(), "still running") != leaves {
				t.Errorf("it leaves one: %v; log:\n%s", leaves, log)
			}
		})
	}
}

// leftover is a system with a process of an earlier start that ends on a signal.
type leftover struct {
	*simulated
	endsOn syscall.Signal
	alive  atomic.Bool

	mu    sync.Mutex
	ended time.Time
	got   []syscall.Signal
}

func (l *leftover) Leftovers(string) []int {
	if l.alive.Load() {
		return []int{7}
	}
	return nil
}

func (l *leftover) SignalAll(_ string, pids []int, sig syscall.Signal) {
	if len(pids) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, sig)
	if sig == l.endsOn {
		l.alive.Store(false)
		l.ended = time.Now()
	}
}

// TestCauseOf has how programs end, and what that means for the next start.
func TestCauseOf(t *testing.T) {
	for _, tc := range []struct {
		exit Exit
		want Cause
	}{
		{Exit{Code: 0}, Completed}, {Exit{Code: 1}, Failed}, {Exit{Code: -1, Signal: syscall.SIGKILL}, Failed},
		{Exit{Code: exitTempFail}, Preempted}, {Exit{Code: -1, Signal: syscall.SIGTERM}, Preempted},
		{Exit{Code: 63}, Failed}, {Exit{Code: 64}, Final}, {Exit{Code: 65}, Final}, {Exit{Code: 78}, Final},
		{Exit{Code: 125}, Failed}, {Exit{Code: 126}, Final}, {Exit{Code: 127}, Final}, {Exit{Code: 128}, Failed},
	} {
		if got := causeOf(&tc.exit, false, false); got != tc.want {
			t.Errorf("%+v: %v, want %v", tc.exit, got, tc.want)
		}
		if stopped, hung := causeOf(&tc.exit, true, true), causeOf(&tc.exit, false, true); stopped != Stopped || hung != Hung {
			t.Errorf("%+v: %v at a stop, %v when it hung", tc.exit, stopped, hung)
		}
	}
}

// TestCrashOfAWorker has a program whose part on a worker's node ends as Go programs do that
// crash, and as those do whose command line is wrong: it is the latter only where nothing has
// been done yet on any node.
func TestCrashOfAWorker(t *testing.T) {
	for does, want := range map[string]Exit{"step=1": {Cause: Completed, Attempt: 2}, "": {Cause: Final, Attempt: 1}} {
		synctest.Test(t, func(t *testing.T) {
			program := func(does string, takes time.Duration, code int) func(p *simProgram) int {
				return func(p *simProgram) int {
					if p.variable("TRAINERD_ATTEMPT") != "1" {
						return 0
					}
					p.say("%s", does)
					p.sleep(takes)
					return code
				}
			}
			chief, _ := simulate(t, program(does, time.Hour, 0))
			worker, _ := simulate(t, program("", time.Minute, exitUsage))
			chief.Nodes, worker.Nodes, worker.Node, worker.Logdir = 2, 2, 1, chief.Logdir
			_, end := begin(t, chief)
			time.Sleep(time.Second)
			_, endWorker := begin(t, worker)
			exit, err := end()
			endWorker()
			if exit.Cause != want.Cause || exit.Attempt != want.Attempt || is[*ExitError](err) != (want.Cause == Final) {
				t.Errorf("having done %q: Run = %+v, %v; want %v", does, exit, err, want.Cause)
			}
		})
	}
}

// TestNoGroupLock has a folder that cannot be locked for a program: none is started.
func TestNoGroupLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { t.Error("the program is started"); return 0 })
		childtest.Must(t, os.MkdirAll(filepath.Join(sv.Logdir, lock.GroupFile), 0o777))
		if _, err := sv.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "locking logdir for a program") {
			t.Errorf("Run = %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // while another has it
		sv, _ := simulate(t, nil)
		holdGroup(t, sv)
		time.AfterFunc(time.Second+system.GroupPoll/2, func() { os.RemoveAll(sv.Logdir) }) // not at a scan
		if held, err := awaitGroup(t.Context(), sv.Logdir, time.Minute); held != nil || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, %v", held, err)
		}
	})
}

// comesLate has leftovers after the first scan.
type comesLate struct {
	*simulated
	looks int
}

func (s *comesLate) Leftovers(string) []int {
	if s.looks++; s.looks == 1 {
		return nil
	}
	return []int{7}
}

// TestStatsBeforeRun: there are none.
func TestStatsBeforeRun(t *testing.T) {
	if got := new(Supervisor).Stats(); got != (trainerd.Stats{}) {
		t.Errorf("Stats = %+v", got)
	}
}

// TestErrorTexts has what users read in the end.
func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"a b hung and was killed; it has failed 3 times within 1h0m0s, so it is not started again": &ExitError{Command: []string{"a", "b"}, Exit: Exit{Cause: Hung}, Failures: 3, Window: time.Hour},
		"a ended with exit code 78, which another start would not change; its output says more":    &ExitError{Command: []string{"a"}, Exit: Exit{Cause: Final, Code: 78}, Failures: 1, Window: time.Hour},
		"a was ended by signal 9 (killed); it is not started again":                                &ExitError{Command: []string{"a"}, Exit: Exit{Cause: Failed, Code: -1, Signal: 9}, Failures: 1, Window: time.Minute},
		"cannot start a b: why": &StartError{[]string{"a", "b"}, errors.New("why")},
	} {
		if err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if why := errors.New("why"); !errors.Is(&StartError{nil, why}, why) {
		t.Error("the cause of a failed start is not to be found")
	}
	for c, want := range map[Cause]string{Completed: "completed", Diverged: "diverged", Diverged + 1: "Cause(7)", 99: "Cause(99)", -1: "Cause(-1)"} {
		if c.String() != want {
			t.Errorf("cause %d is %q, want %q", int(c), c, want)
		}
	}
}

// TestEventsThatAreInvalid: they are logged, and the run continues.
func TestEventsThatAreInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(p *simProgram) int {
			p.say("step=1")
			p.sleep(time.Minute)
			return 0
		})
		sv.HParams = map[string]any{"no value": func() {}}
		_, end := begin(t, sv)
		time.Sleep(time.Second)
		if err := sv.Note(t.Context(), "\xff", "text"); err != nil {
			t.Error(err)
		}
		if exit, err := end(); err != nil || exit.Cause != Completed {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		for _, want := range []string{"an event cannot be written", "cannot write the hyperparameters"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
	})
}

// TestConfigCannotBeKept has a disk that does not take the config: the program is started all
// the same.
func TestConfigCannotBeKept(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			sv, log := simulate(t, func(*simProgram) int { return 0 })
			sv.Config = []byte("steps = 7\n")
			picky(sv, func(op, below string) bool { return fails && op == "rename" && below == ConfigName })
			if _, err := sv.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if got := strings.Contains(log.String(), "the config could not be kept"); got != fails {
				t.Errorf("the disk fails: %v; the log:\n%s", fails, log)
			}
		})
	}
}

// TestPreemptionsAreCounted has a program that is preempted twice: the log says how often.
func TestPreemptionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sv, log := simulate(t, func(*simProgram) int {
			if starts++; starts < 3 {
				return exitTempFail
			}
			return 0
		})
		if _, err := sv.Run(t.Context()); err != nil || !strings.Contains(log.String(), "preemptions=1") || !strings.Contains(log.String(), "preemptions=2") {
			t.Errorf("Run: %v\n%s", err, log)
		}
	})
}

// killTimes is a system that notes when leftover processes are killed, and what their killing ends.
type killTimes struct {
	*simulated
	at []time.Time
}

func (k *killTimes) SignalAll(dir string, pids []int, sig syscall.Signal) {
	if k.simulated.SignalAll(dir, pids, sig); sig == system.SigKill && len(pids) > 0 {
		k.at = append(k.at, time.Now())
		k.leave()
	}
}

// TestKillReachesSessions has a program that does not end at a stop, and has started a process
// with a session of its own, which has its outputs: that is killed with it, not once it is no
// longer waited for.
func TestKillReachesSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sys := &killTimes{}
		sv, _ := simulate(t, func(p *simProgram) int {
			p.holdOutputs()
			sys.leave(7)
			for p.sleepDeaf(time.Hour) {
			}
			return 0
		})
		sys.simulated = sv.System.(*simulated)
		sv.System, sv.Grace = sys, 100*time.Second
		stop, end := begin(t, sv)
		pass(10 * time.Second)
		stop()
		stopped := time.Now()
		if end(); len(sys.at) != 1 || sys.at[0].Sub(stopped) != sv.Grace {
			t.Errorf("stopped at %v, it is killed at %v, want %v later", stopped, sys.at, sv.Grace)
		}
	})
}
