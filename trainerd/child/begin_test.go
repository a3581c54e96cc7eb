//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd"
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
		"the logdir is a file": {func(t *testing.T, sv *Supervisor) { writeFile(t, sv.Logdir, "x") }, "not a directory"},
		"the nodes are a file": {func(t *testing.T, sv *Supervisor) {
			sv.Nodes = 2
			writeFile(t, filepath.Join(sv.Logdir, nodesDir), "x")
		}, "not a directory"},
		"no events": {func(t *testing.T, sv *Supervisor) {
			writeFile(t, filepath.Join(sv.Logdir, "events.out.tfevents.1.theirs"), "x")
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

// holdGroup holds the lock of the group of a run, as a process in another container does.
func holdGroup(t *testing.T, sv *Supervisor) {
	t.Helper()
	must(t, os.MkdirAll(sv.Logdir, 0o777))
	held, err := lock.HoldGroup(sv.Logdir)
	must(t, err)
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

// comesLate has leftovers after the first look.
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
		"a b hung and was killed; it has failed 3 times within 1h0m0s, so it is not started again":        &ExitError{Command: []string{"a", "b"}, Exit: Exit{Cause: Hung}, Failures: 3, Window: time.Hour},
		"a ended with exit code 78, which another start would not change; its output says more":           &ExitError{Command: []string{"a"}, Exit: Exit{Cause: Final, Code: 78}, Failures: 1, Window: time.Hour},
		"a was ended by signal 9 (killed); it has failed 1 times within 1m0s, so it is not started again": &ExitError{Command: []string{"a"}, Exit: Exit{Cause: Failed, Code: -1, Signal: 9}, Failures: 1, Window: time.Minute},
		"cannot start a b: why": &StartError{[]string{"a", "b"}, errors.New("why")},
	} {
		if err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for c, want := range map[Cause]string{Completed: "completed", Diverged: "diverged", 99: "Cause(99)", -1: "Cause(-1)"} {
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
