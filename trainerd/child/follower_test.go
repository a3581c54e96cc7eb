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
	must(t, writeJSON(nil, name, j))
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
				sv.Log = nil
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
			})
		})
	}
}

// TestFollowerOfChiefWithoutLockFile has a lock file that is removed, which the chief makes
// again with its next look: the worker does not take its place meanwhile.
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
			must(t, os.Rename(name, name+".gone"))
			time.Sleep(2 * sv.lookEvery())
			must(t, os.Rename(name+".gone", name))
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
		must(t, os.WriteFile(name, []byte(`{"host":"elsewhere","pid":7,"start":"2026-01-02T03:04:05Z"}`), 0o666))
		time.Sleep(10 * time.Second)
		var told nodeState
		if readJSON(filepath.Join(sv.Logdir, nodesDir, "node1.json"), &told); told.Phase != nodeEnded {
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

// TestFollowerCannotBegin has workers that cannot be one.
func TestFollowerCannotBegin(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, sv *Supervisor){
		"a file has the name of its folder": func(t *testing.T, sv *Supervisor) {
			writeFile(t, filepath.Join(sv.Logdir, nodesDir, "node1"), "x")
		},
		"processes of an earlier start stay": func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).left = []int{7} },
		"no socket":                          func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).noSocket = errors.New("no socket") },
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
	must(t, writeJSON(nil, n.nodeFile(0), state))
	r := &run{Supervisor: &Supervisor{Grace: 100 * time.Second}, log: discard, nodes: n, logdir: n.dir}
	r.ectx = t.Context()
	return r
}

// TestAwaitParts has a node that does not end its part: it is given the time that the
// chief has, and at a stop what is left of it, but for a tenth.
func TestAwaitParts(t *testing.T) {
	for _, tc := range []struct{ since, want time.Duration }{{-1, 100 * time.Second}, {10 * time.Second, 80 * time.Second}, {200 * time.Second, newsTime}} {
		synctest.Test(t, func(t *testing.T) {
			r := nodesOf(t, nodeState{start: start{Chief: lifeOf(lock.Holder{})}, Phase: nodeRunning})
			if tc.since >= 0 {
				r.attempt.ending = &ending{begun: time.Now().Add(-tc.since)}
			}
			begun := time.Now()
			if r.awaitParts(t.Context()); time.Since(begun) != tc.want {
				t.Errorf("stopped %v ago: it took %v, want %v", tc.since, time.Since(begun), tc.want)
			}
		})
	}
}

// TestEndedWellOnNodes has what another node says of its part of a start.
func TestEndedWellOnNodes(t *testing.T) {
	this := start{Chief: lifeOf(lock.Holder{})}
	for _, tc := range []struct {
		state nodeState
		want  bool
	}{
		{nodeState{start: this, Phase: nodeEnded}, true},
		{nodeState{start: this, Phase: nodeEnded, Code: 1}, false},
		{nodeState{start: this, Phase: nodeRunning}, false},
		{nodeState{start: start{this.Chief, 7}, Phase: nodeEnded, Code: 1}, true}, // of another start
		{nodeState{}, true}, // it says nothing
	} {
		if got := nodesOf(t, tc.state).endedWellOnNodes(); got != tc.want {
			t.Errorf("%+v: %v", tc.state, got)
		}
	}
	if !(&run{}).endedWellOnNodes() {
		t.Error("there is one node, and another has not ended well")
	}
}

// TestNodesAreNotTold has folders in the place of the files by which nodes find each other:
// the log says so, and the program runs.
func TestNodesAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulate(t, func(*simProgram) int { return 0 })
		sv.Nodes = 2
		writeFile(t, filepath.Join(sv.Logdir, nodesDir, "job.json", "x"), "x")
		if _, err := sv.Run(t.Context()); err != nil || !strings.Contains(log.String(), "cannot send instructions to the other nodes") {
			t.Errorf("the chief: %v; log:\n%s", err, log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulateFollower(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
		writeFile(t, filepath.Join(sv.Logdir, nodesDir, "node1.json", "x"), "x")
		_, end := begin(t, sv)
		time.Sleep(10 * time.Second)
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase = jobStopped })
		if _, err := end(); err != nil || !strings.Contains(log.String(), "cannot report the state of the program to the chief") {
			t.Errorf("the worker: %v; log:\n%s", err, log)
		}
	})
}

// TestChiefDoesNotWaitForever has a node on which the program of an earlier chief seems to
// run: the chief waits as long as that may take to end, or until it is stopped.
func TestChiefDoesNotWaitForever(t *testing.T) {
	for _, stop := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			begun, starts := time.Now(), 0
			sv, log := simulate(t, func(*simProgram) int { starts++; return 0 })
			sv.Nodes, sv.Grace = 2, 10*time.Second
			before := start{"elsewhere/7/1", 3}
			for name, state := range map[string]any{"job.json": jobState{start: before, Phase: nodeRunning}, "node1.json": nodeState{start: before, Phase: nodeRunning}} {
				writeFile(t, filepath.Join(sv.Logdir, nodesDir, name), "")
				must(t, writeJSON(nil, filepath.Join(sv.Logdir, nodesDir, name), state))
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := sv.grace()
			if stop > 0 {
				time.AfterFunc(stop, cancel)
				want = stop
			}
			exit, err := sv.Run(ctx)
			if took := time.Since(begun); err != nil || took < want || took > want+3*time.Second || (starts == 0) != (stop > 0) {
				t.Errorf("Run = %+v, %v after %v and %d starts", exit, err, took, starts)
			}
			if got := strings.Contains(log.String(), "a node has not ended the program in time"); got == (stop > 0) {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}
