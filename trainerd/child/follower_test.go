//go:build unix

package child

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	lock "github.com/trainerd/trainerd/trainerd/logdir"
)

// simulateFollower returns a worker of a chief that has started the program.
func simulateFollower(t *testing.T, program func(p *simProgram) int) (*Supervisor, *screen) {
	t.Helper()
	sv, log := simulate(t, program)
	sv.Nodes, sv.Node = 2, 1
	lead(t, sv.Logdir)
	return sv, log
}

// tellJob publishes what the chief does.
func tellJob(t *testing.T, logdir string, change func(j *jobState)) {
	t.Helper()
	name := filepath.Join(logdir, nodesDir, "job.json")
	var j jobState
	readJSON(name, &j)
	change(&j)
	childtest.Must(t, writeJSON(nil, name, j))
}

// tellState says how the program does on a node.
func tellState(t *testing.T, n *nodes, node int, s nodeState) {
	t.Helper()
	childtest.Must(t, os.MkdirAll(n.folder(node), 0o777))
	childtest.Must(t, writeJSON(nil, n.nodeFile(node), s))
}

// TestFollowerEnds has a worker whose program runs, and what may end both.
func TestFollowerEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(t *testing.T, logdir string)
		deaf    bool
		want    func(exit Exit, err error) bool
	}{
		"the logdir is deleted": {func(t *testing.T, logdir string) { deleteLogdir(logdir) }, false,
			func(_ Exit, err error) bool { return is[*lock.LostError](err) }},
		"the job has failed": {func(t *testing.T, logdir string) {
			tellJob(t, logdir, func(j *jobState) { j.Phase, j.Host, j.Reason = jobFailed, "h", "why" })
		}, false, func(_ Exit, err error) bool {
			return is[*ChiefError](err) && err.Error() == "the chief, on h, has ended: why"
		}},
		"the job was stopped, and the program is deaf": {func(t *testing.T, logdir string) { tellJob(t, logdir, func(j *jobState) { j.Phase = jobStopped }) }, true,
			func(exit Exit, err error) bool { return err == nil && exit.Cause == Stopped }},
		"the job is complete, and the program does not end": {func(t *testing.T, logdir string) { tellJob(t, logdir, func(j *jobState) { j.Phase = jobComplete }) }, false,
			func(exit Exit, err error) bool { return err == nil && exit.Cause == Completed }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sv, log := simulateFollower(t, func(p *simProgram) int {
					for p.sleep(time.Hour) || tc.deaf && p.sleepDeaf(time.Hour) {
					}
					return 0
				})
				ends := &seesEnds{}
				sv.Log, sv.Observer = nil, ends
				_, end := begin(t, sv)
				time.Sleep(10 * time.Second)
				tc.happens(t, sv.Logdir)
				begun := time.Now()
				if exit, err := end(); !tc.want(exit, err) {
					t.Errorf("Run = %+v, %v", exit, err)
				}
				if took := time.Since(begun); took > 3*DefaultGrace {
					t.Errorf("it took %v", took)
				}
				if log.String() != "" {
					t.Errorf("a log that is not used has %s", log)
				}
				if !slices.Equal(ends.started, []int{1}) || len(ends.seen) != 1 || ends.again[0] || ends.seen[0].Attempt != 1 {
					t.Errorf("the observer saw %+v", ends)
				}
				if files, err := filepath.Glob(filepath.Join(sv.Logdir, nodesDir, "*.reports*")); err != nil || len(files) > 0 {
					t.Errorf("the program has reported nothing, and %q are passed on; %v", files, err)
				}
			})
		})
	}
}

// TestFollowerOfChiefWithoutLockFile has a lock file that is removed, which the chief makes
// again with its next scan: the worker does not take its place meanwhile.
func TestFollowerOfChiefWithoutLockFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told time.Time
		sv, log := simulateFollower(t, func(p *simProgram) int {
			p.sleep(time.Hour)
			told = time.Now()
			return 0
		})
		_, end := begin(t, sv)
		time.Sleep(10 * time.Second)
		name := filepath.Join(sv.Logdir, lock.LockFile)
		for range 3 {
			childtest.Must(t, os.Rename(name, name+".gone"))
			time.Sleep(2 * sv.scanEvery())
			childtest.Must(t, os.Rename(name+".gone", name))
			time.Sleep(10 * time.Second)
		}
		stopped := time.Now()
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = jobStopped })
		if exit, err := end(); err != nil || exit.Cause != Stopped || told.Before(stopped) || strings.Contains(log.String(), "takes its place") {
			t.Errorf("Run = %+v, %v; the program was ended %v before the job; log:\n%s", exit, err, stopped.Sub(told), log)
		}
	})
}

// TestFollowerOfNewChief has another chief take the lock while the program runs for the
// one before: it is ended, and started for the new one.
func TestFollowerOfNewChief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renditions []string
		sv, _ := simulateFollower(t, func(p *simProgram) int {
			renditions = append(renditions, p.variable("TRAINERD_RENDEZVOUS"))
			p.sleep(time.Hour)
			return 0
		})
		_, end := begin(t, sv)
		time.Sleep(10 * time.Second)
		// The new chief has the lock, and has not begun.
		name := filepath.Join(sv.Logdir, lock.LockFile)
		childtest.Must(t, os.WriteFile(name, []byte(`{"host":"elsewhere","pid":7,"start":"2026-01-02T03:04:05Z"}`), 0o666))
		time.Sleep(10 * time.Second)
		var told nodeState
		if readJSON(filepath.Join(sv.Logdir, nodesDir, "node1", "state.json"), &told); told.Phase != nodeEnded {
			t.Errorf("the program is %s", told.Phase)
		}
		chief := lifeOf(lock.Named(sv.Logdir))
		tellJob(t, sv.Logdir, func(j *jobState) { j.start = start{chief, 1} })
		time.Sleep(10 * time.Second)
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = jobStopped })
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if len(renditions) != 2 || renditions[0] == renditions[1] {
			t.Errorf("the starts meet at %q", renditions)
		}
	})
}

// TestFollowerIsStopped has a worker that is stopped. Its program has its part in the save that
// the chief has made first, so it is ended when that is over, or does not come.
func TestFollowerIsStopped(t *testing.T) {
	const never = DefaultGrace / 2
	for name, tc := range map[string]struct {
		happens func(t *testing.T, logdir string, release func()) // 10 s after the stop
		want    time.Duration                                     // from the stop to the end of the program
	}{
		"the chief does nothing":     {func(*testing.T, string, func()) {}, never + time.Second},
		"the chief ends its program": {func(t *testing.T, dir string, _ func()) { tellJob(t, dir, func(j *jobState) { j.Phase = nodeEnding }) }, 11 * time.Second},
		"the chief goes":             {func(_ *testing.T, _ string, release func()) { release() }, 11 * time.Second},
		"another is the chief": {func(t *testing.T, dir string, _ func()) {
			childtest.Must(t, os.WriteFile(filepath.Join(dir, lock.LockFile), []byte(`{"host":"elsewhere","pid":7,"start":"2026-01-02T03:04:05Z"}`), 0o666))
		}, 11 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told time.Time
			sv, log := simulate(t, func(p *simProgram) int {
				for p.sleep(time.Hour) {
				}
				told = time.Now()
				return 0
			})
			sv.Nodes, sv.Node = 2, 1
			release := lead(t, sv.Logdir)
			stop, end := begin(t, sv)
			time.Sleep(10*time.Second + time.Millisecond)
			stop()
			stopped := time.Now()
			synctest.Wait()
			var said nodeState
			if readJSON((&nodes{dir: filepath.Join(sv.Logdir, nodesDir)}).nodeFile(1), &said); said.Phase != nodeEnding {
				t.Errorf("%s: the chief was told %q", name, said.Phase)
			}
			time.Sleep(10 * time.Second)
			tc.happens(t, sv.Logdir, release)
			if exit, err := end(); err != nil || exit.Cause != Stopped || exit.Step != -1 {
				t.Errorf("%s: Run = %+v, %v", name, exit, err)
			}
			if took := told.Sub(stopped); took < tc.want-2*time.Second || took > tc.want {
				t.Errorf("%s: the program was told after %v, want %v; log:\n%s", name, took, tc.want, log)
			}
			if open := sv.System.(*simulated).open; len(open) > 0 {
				t.Errorf("%s: %d sockets are open", name, len(open))
			}
		})
	}
}

// TestFollowerWithoutAStart has a worker that comes when the job is over, or is stopped before
// the chief has begun.
func TestFollowerWithoutAStart(t *testing.T) {
	for phase, want := range map[phase]Cause{jobComplete: Completed, jobStopped: Stopped, nodeEnded: Stopped} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulateFollower(t, func(*simProgram) int { t.Error("the program was started"); return 0 })
			tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = phase })
			stop, end := begin(t, sv)
			time.Sleep(10 * time.Second)
			begun := time.Now()
			stop()
			if exit, err := end(); err != nil || exit.Cause != want || time.Since(begun) > time.Second {
				t.Errorf("%s: Run = %+v, %v after %v", phase, exit, err, time.Since(begun))
			}
		})
	}
}

// TestFollowerTakesOver has a chief that goes: the worker waits for three scans, for the
// lock file may come again, and then takes its place.
func TestFollowerTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Time
		sv, log := simulate(t, func(p *simProgram) int {
			p.sleep(time.Hour)
			told = append(told, time.Now())
			return 0
		})
		sv.Nodes, sv.Node = 2, 1
		release := lead(t, sv.Logdir)
		stop, end := begin(t, sv)
		time.Sleep(10*time.Second + time.Millisecond)
		release()
		gone := time.Now()
		time.Sleep(30 * time.Second)
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped || !strings.Contains(log.String(), "takes its place") {
			t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
		}
		if took := told[0].Sub(gone).Round(time.Second); len(told) != 2 || took != (1+unledChecks)*sv.scanEvery() {
			t.Errorf("the starts were ended at %v; the first %v after the chief had gone", told, took)
		}
	})
}

// TestFollowerGivesTime has programs that do not end with the job: each is given the time to
// stop, from when the chief's has ended on, in each start.
func TestFollowerGivesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Time
		sv, log := simulateFollower(t, func(p *simProgram) int {
			p.sleep(time.Hour)
			told = append(told, time.Now())
			p.sleepDeaf(20 * time.Second)
			return 1 // it is the job that counts
		})
		_, end := begin(t, sv)
		for attempt, over := range []phase{nodeClosing, jobComplete} {
			tellJob(t, sv.Logdir, func(j *jobState) { j.Phase, j.Attempt = nodeRunning, attempt+1 })
			pass(10*time.Second + time.Millisecond)
			tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = over })
			closing := time.Now()
			pass(DefaultGrace + 30*time.Second)
			if len(told) != attempt+1 || told[attempt].Sub(closing) > DefaultGrace+sv.scanEvery() || told[attempt].Sub(closing) < DefaultGrace {
				t.Errorf("%s at %v: the programs were told to end at %v", over, closing, told)
			}
		}
		if exit, err := end(); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if got := strings.Count(log.String(), `"still waiting" for="the program to end"`); got != 2 || strings.Contains(log.String(), "the disk of the logdir") {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// slowSystem takes its time for each socket.
type slowSystem struct{ *simulated }

func (s slowSystem) Listen() (system.Listener, error) {
	time.Sleep(time.Minute)
	return s.simulated.Listen()
}

// TestNodesAreNotSilent has nodes that wait: for a system that hangs, for the chief, and for
// the program to end on another node.
func TestNodesAreNotSilent(t *testing.T) {
	for name, wait := range map[string]func(sv *Supervisor, n *nodes){
		"the system":                     func(sv *Supervisor, _ *nodes) { sv.System = slowSystem{sv.System.(*simulated)} },
		"the chief to start the program": func(sv *Supervisor, _ *nodes) { tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = nodeEnded }) },
		"the program to end on another node": func(_ *Supervisor, n *nodes) {
			tellState(t, n, 0, nodeState{start: n.job().start, Phase: nodeRunning})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
			sv.Nodes, sv.Node = 2, 1
			release := lead(t, sv.Logdir)
			wait(sv, &nodes{dir: filepath.Join(sv.Logdir, nodesDir)})
			if strings.HasPrefix(name, "the program") {
				release() // so that it leads itself
			}
			var log sessiontest.Pauses
			sv.Log = slog.New(slog.NewTextHandler(&log, nil))
			stop, end := begin(t, sv)
			time.Sleep(time.Minute - time.Second)
			if got := log.Longest(); got > 30*time.Second {
				t.Errorf("waiting for %s: the log was silent for %v", name, got)
			}
			stop()
			end()
		})
	}
}

// TestFollowerPassesReportsOn has reports that the chief takes, more than one file of them,
// and in another start those of another node: each start has files of its own.
func TestFollowerPassesReportsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = maxForwarded/50_000 + 1
		values := strings.Repeat(" a=1", 1000) // some 40 KB as they are passed on
		sv, _ := simulateFollower(t, func(p *simProgram) int {
			for step := range each {
				p.sleep(time.Second)
				p.say("step=%d%s", step, values)
			}
			p.sleep(time.Hour)
			return 0
		})
		heard := 0
		sv.Observer = whenReported{nobody{}, func(*Report) { heard++ }}
		stop, end := begin(t, sv)
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
		own, other := 1, 0
		for attempt, speaker := range []*int{nil, &other, &own} {
			tellJob(t, sv.Logdir, func(j *jobState) { j.Attempt, j.Speaker = attempt+1, speaker })
			time.Sleep(time.Minute)
			passed := &forwarded{}
			passed.read(func(part int) string { return n.reportsFile(n.job().start, 1, part) })
			if want := map[bool]int{true: 0, false: each}[speaker == &other]; len(passed.reports) != want {
				t.Errorf("start %d: %d reports were passed on, want %d", attempt+1, len(passed.reports), want)
			}
		}
		stop()
		if end(); heard != 3*each {
			t.Errorf("the observer heard %d reports", heard)
		}
	})
}

// TestFollowerLeftovers has processes that a program leaves on a worker: they stay while the
// job may have use for them, which it has not after a failure or a stop.
func TestFollowerLeftovers(t *testing.T) {
	for name, tc := range map[string]struct {
		code    int
		stopped bool
		want    []syscall.Signal
	}{
		"it succeeds":    {0, false, nil},
		"it fails":       {1, false, []syscall.Signal{system.SigKill}},
		"it is stopped":  {0, true, []syscall.Signal{system.SigCont, system.SigTerm, system.SigKill}},
		"it fails, late": {1, true, []syscall.Signal{system.SigCont, system.SigTerm, system.SigKill}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var on *simulated
			sv, _ := simulateFollower(t, func(p *simProgram) int {
				on.leave(7)
				if tc.stopped {
					p.sleep(time.Hour)
				}
				return tc.code
			})
			on = sv.System.(*simulated)
			stop, end := begin(t, sv)
			pass(10 * time.Second)
			tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = nodeEnded })
			pass(20 * time.Second)
			if stop(); !slices.Equal(slices.Compact(on.ended), tc.want) { // SIGKILL twice, since they stay
				t.Errorf("%s: they got %v, want %v", name, on.ended, tc.want)
			}
			end()
		})
	}
}

// TestFollowerCannotBegin has workers that cannot be one.
func TestFollowerCannotBegin(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, sv *Supervisor){
		"a file has the name of its folder": func(t *testing.T, sv *Supervisor) {
			childtest.Write(t, filepath.Join(sv.Logdir, nodesDir, "node1"), "x")
		},
		"processes of an earlier start stay": func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).left = []int{7} },
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulateFollower(t, nil)
			harm(t, sv)
			if exit, err := sv.Run(t.Context()); err == nil || exit.Attempt != 0 {
				t.Errorf("%s: Run = %+v, %v", name, exit, err)
			}
		})
	}
}

// TestOneNode has a job of one node: there is nobody to be told anything.
func TestOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { return 0 })
		sv.Nodes = 1
		if _, err := sv.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(sv.Logdir, nodesDir)); err == nil {
			t.Error("there is a folder for nodes")
		}
	})
	if want, err := os.Hostname(); err == nil && hostname() != want {
		t.Errorf("the host is %q, want %q", hostname(), want)
	}
}

// nodesOf returns a chief that is node 1 of two, and what node 0 has told it.
func nodesOf(t *testing.T, state nodeState) *run {
	t.Helper()
	n := &nodes{dir: t.TempDir(), count: 2, own: 1}
	tellState(t, n, 0, state)
	r := &run{Supervisor: &Supervisor{Grace: 100 * time.Second}, log: discard, observer: nobody{}, nodes: n, logdir: n.dir}
	r.ectx = t.Context()
	return r
}
