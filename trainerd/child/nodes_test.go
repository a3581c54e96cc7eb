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
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
	lock "github.com/trainerd/trainerd/trainerd/logdir"
)

// node is a Supervisor of a job with two nodes.
type node struct {
	*Supervisor
	*screen
	stop  context.CancelFunc
	ended chan struct{}
	exit  Exit
	err   error
}

// join starts a node, with the given settings.
func join(t *testing.T, logdir string, number int, script string, settings ...func(*Supervisor)) *node {
	t.Helper()
	sv, out := supervise(t, script)
	for _, set := range settings {
		set(sv)
	}
	sv.Logdir, sv.Nodes, sv.Node = logdir, 2, number
	ctx, cancel := context.WithCancel(t.Context())
	n := &node{Supervisor: sv, screen: out, stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(n.ended)
		n.exit, n.err = sv.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-n.ended })
	return n
}

// end waits for the end of a node's Run.
func (n *node) end(t *testing.T) (Exit, error) {
	t.Helper()
	select {
	case <-n.ended:
	case <-time.After(patience):
		t.Fatalf("node %d does not end; its output:\n%s", n.Node, n)
	}
	return n.exit, n.err
}

// Whatever ends the program on one node, it is started again on both, as the same
// attempt and from the same checkpoint.
func TestNodesStartTogether(t *testing.T) {
	const (
		begin = "env STEP;env ATTEMPT;"
		chief = "|" + begin + "await part1" // its part ends when the other has done its own
		other = "|" + begin + "write part1"
		waits = "write there1;sleep"
	)
	for name, scripts := range map[string][2]string{
		"the chief's program fails":   {begin + "await there1;write ckpt-5;exit 1" + chief, begin + waits + other},
		"the chief's program is hit":  {begin + "await there1;write ckpt-5;kill 9" + chief, begin + waits + other},
		"a worker's program fails":    {begin + waits + chief, begin + "write ckpt-5;exit 1" + other},
		"a worker's program is ended": {begin + waits + chief, begin + "write ckpt-5;kill 15" + other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			chief := join(t, logdir, 0, scripts[0])
			chief.await(t, `ATTEMPT is "1"`)
			worker := join(t, logdir, 1, scripts[1])
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
				if !strings.Contains(n.String(), "STEP is \"5\"\nATTEMPT is \"2\"") {
					t.Errorf("node %d did not begin at the step:\n%s", n.Node, n)
				}
			}
		})
	}
}

// A stop of the chief ends the job on all nodes; one of a worker starts it again on
// those that are left.
func TestNodesStop(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	const script = "env ATTEMPT;polite ckpt-1|env ATTEMPT;polite ckpt-2|env ATTEMPT;polite ckpt-3"
	chief := join(t, logdir, 0, script)
	chief.await(t, "ready")
	worker := join(t, logdir, 1, script)
	worker.await(t, "ready")
	worker.stop()
	if exit, err := worker.end(t); err != nil || exit.Cause != Stopped {
		t.Errorf("the worker that was stopped: %+v, %v", exit, err)
	}
	chief.await(t, `ATTEMPT is "2"`)
	worker = join(t, logdir, 1, script)
	worker.await(t, `ATTEMPT is "2"`)
	worker.await(t, "ready")
	chief.stop()
	for _, n := range []*node{chief, worker} {
		if exit, err := n.end(t); err != nil || exit.Cause != Stopped {
			t.Errorf("node %d: %+v, %v", n.Node, exit, err)
		}
	}
}

// What would fail again fails the job on all nodes.
func TestNodesFail(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	chief := join(t, logdir, 0, "say ready;sleep")
	chief.await(t, "ready")
	worker := join(t, logdir, 1, "exit 78")
	_, err := chief.end(t)
	if e := (*ExitError)(nil); !errors.As(err, &e) || e.Exit.Cause != Final || e.Exit.Code != 78 {
		t.Errorf("the chief: %v; want the worker's exit code 78", err)
	}
	_, err = worker.end(t)
	if e := (*ChiefError)(nil); !errors.As(err, &e) {
		t.Errorf("the worker: %v; want a *ChiefError", err)
	}
}

// A worker takes the place of a chief that is killed, and the successor of that one
// becomes a worker.
func TestNodesFailOver(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	cmd := trainerdCommand(logdir, "touch $TRAINERD_LOGDIR/ckpt-3; while true; do sleep 0.1; done")
	cmd.Env = append(cmd.Env, asNode+"=0 of 2")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
	worker := join(t, logdir, 1, "polite ckpt-4")
	worker.await(t, "ready")
	first := worker.String()
	cmd.Process.Kill()
	cmd.Wait()
	await(t, "the worker is the chief and has begun again", func() bool { return strings.Count(worker.String(), "ready") > strings.Count(first, "ready") })
	second := join(t, logdir, 0, "env NODE;env CHIEF;polite ckpt-4")
	second.await(t, "ready")
	if host := hostname(); !strings.Contains(second.String(), "NODE is \"0\"\nCHIEF is \""+host) {
		t.Errorf("the program was told:\n%s", second)
	}
	worker.stop()
	for _, n := range []*node{worker, second} {
		if exit, err := n.end(t); err != nil || exit.Cause != Stopped {
			t.Errorf("node %d: %+v, %v", n.Node, exit, err)
		}
	}
}

// A program that has ended on a worker is no longer waited for, although the chief's
// takes longer to end: nobody is left who could be killed.
func TestFollowerAfterTheEnd(t *testing.T) {
	sv, _ := supervise(t, "")
	sv.Nodes, sv.Node = 2, 1
	ln, err := system.OS{}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Supervisor: sv, log: discard, observer: nobody{}, logdir: sv.Logdir,
		attempt: attempt{process: &process{listener: ln}, ending: &ending{stage: toldGroup, next: time.After(0)}}}
	childtest.Must(t, os.MkdirAll(sv.Logdir, 0o777))
	childtest.Must(t, r.joinNodes())
	f := &follower{run: r, stopRequested: time.Now()}
	f.ended(t.Context())
	if f.ends() != nil {
		t.Error("the end of the program has a next stage")
	}
}

// lead makes this process a chief that has started the program and does nothing more. It
// returns what ends it.
func lead(t *testing.T, dir string) (release func()) {
	t.Helper()
	childtest.Must(t, os.MkdirAll(filepath.Join(dir, nodesDir), 0o777))
	held, err := lock.Acquire(dir, nil)
	childtest.Must(t, err)
	release = sync.OnceFunc(func() { held.Release() })
	t.Cleanup(release)
	childtest.Must(t, writeJSON(nil, filepath.Join(dir, nodesDir, "job.json"), jobState{start: start{lifeOf(lock.Named(dir)), 1}, Phase: nodeRunning}))
	return release
}

var errNoSocket = errors.New("no socket")

// A worker that cannot start the program tells the chief, which waits for it otherwise.
func TestFollowerCannotStart(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, sv *Supervisor){
		"no program": func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).fails = errors.New("no such program") },
		"no socket":  func(_ *testing.T, sv *Supervisor) { sv.System.(*simulated).noSocket = errNoSocket },
		"another process has the lock": func(t *testing.T, sv *Supervisor) {
			dir := filepath.Join(sv.Logdir, nodesDir, "node1")
			childtest.Must(t, os.MkdirAll(dir, 0o777))
			held, err := lock.HoldGroup(dir)
			childtest.Must(t, err)
			t.Cleanup(func() { held.Close() })
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, nil)
			sv.Nodes, sv.Node = 2, 1
			lead(t, sv.Logdir)
			harm(t, sv)
			exit, err := sv.Run(t.Context())
			if !is[*StartError](err) && !is[*lock.GroupError](err) && !errors.Is(err, errNoSocket) || exit.Code != -1 || exit.Step != -1 {
				t.Errorf("%s: Run = %+v, %v", name, exit, err)
			}
			if open := sv.System.(*simulated).open; len(open) > 0 {
				t.Errorf("%s: %d sockets are open", name, len(open))
			}
			var got nodeState
			readJSON(filepath.Join(sv.Logdir, nodesDir, "node1", "state.json"), &got)
			if got.Phase != nodeEnded || got.Cause != Failed || got.Attempt != 1 {
				t.Errorf("%s: the chief is told %+v", name, got)
			}
		})
	}
}

// A worker that comes while the chief has its program save before it ends takes no part in
// that start: its launcher would disturb the save.
func TestFollowerComesAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []string
		sv, _ := simulate(t, func(p *simProgram) int {
			starts = append(starts, p.variable("TRAINERD_ATTEMPT"))
			p.sleep(time.Hour)
			return 0
		})
		sv.Nodes, sv.Node = 2, 1
		lead(t, sv.Logdir)
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
		job := n.job()
		job.Ending = true
		childtest.Must(t, writeJSON(nil, n.jobFile(), job))
		stop, end := begin(t, sv)
		time.Sleep(10 * time.Second)
		job.Attempt, job.Ending = 2, false
		childtest.Must(t, writeJSON(nil, n.jobFile(), job))
		time.Sleep(10 * time.Second)
		stop()
		if exit, err := end(); err != nil || exit.Cause != Stopped {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if !slices.Equal(starts, []string{"2"}) {
			t.Errorf("starts %v, want the second alone", starts)
		}
	})
}

// A program has ended well only if it has on every node.
func TestNodesEndedWell(t *testing.T) {
	sv, _ := supervise(t, "")
	sv.Nodes, sv.Node = 2, 0
	lead(t, sv.Logdir)
	r := &run{Supervisor: sv, log: discard, logdir: sv.Logdir, attempts: 2}
	childtest.Must(t, r.joinNodes())
	for _, tc := range []struct {
		worker nodeState
		well   bool
	}{
		{nodeState{start: r.start(), Phase: nodeEnded}, true},
		{nodeState{start: r.start(), Phase: nodeEnded, Code: 143}, true},
		{nodeState{start: r.start(), Phase: nodeEnded, Code: 1}, false},
		{nodeState{start: r.start(), Phase: nodeRunning}, false},
		{nodeState{start: start{r.start().Chief, 1}, Phase: nodeEnded, Code: 1}, true}, // of the start before
	} {
		tellState(t, r.nodes, 1, tc.worker)
		if got := r.endedWellOnNodes(); got != tc.well {
			t.Errorf("with %+v on the worker: %v", tc.worker, got)
		}
	}
}

// TestChiefTellsTheOthers has a chief whose program is stopped, succeeds, or is to be ended as
// it ends on two other nodes: what those are told, and how often it is logged.
func TestChiefTellsTheOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		others     nodeState // what they say after 5 s
		stop       bool
		succeeds   bool
		told, then phase // while the program ends, and while the others end it
		logged     int
	}{
		"it is stopped":       {nodeState{Phase: nodeRunning}, true, false, nodeEnding, nodeEnded, 0},
		"it succeeds":         {nodeState{Phase: nodeRunning}, false, true, nodeRunning, nodeClosing, 0},
		"others have to stop": {nodeState{Phase: nodeEnding}, false, false, nodeEnding, nodeEnded, 1},
		"others have failed":  {nodeState{Phase: nodeEnded, Cause: Failed, Code: 1}, false, false, nodeEnding, nodeRunning, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told phase
			n := &nodes{count: 3}
			say := func(s nodeState) {
				for node := 1; node < n.count; node++ {
					s.start = n.job().start
					tellState(t, n, node, s)
				}
			}
			sv, log := simulate(t, func(p *simProgram) int {
				if p.variable("TRAINERD_ATTEMPT") != "1" {
					p.sleep(time.Hour)
					return 0
				}
				if say(nodeState{Phase: nodeRunning}); !tc.succeeds {
					p.sleep(time.Hour)
				}
				time.Sleep(time.Second)
				told = n.job().Phase
				return 0
			})
			sv.Nodes, n.dir = n.count, filepath.Join(sv.Logdir, nodesDir)
			stop, end := begin(t, sv)
			time.Sleep(5 * time.Second)
			if say(tc.others); tc.stop {
				stop()
			}
			time.Sleep(4 * time.Second)
			then := n.job().Phase
			say(nodeState{Phase: nodeEnded})
			time.Sleep(10 * time.Second)
			stop()
			if _, err := end(); err != nil || told != tc.told || then != tc.then {
				t.Errorf("%s: %v; told %s, then %s; want %s, %s", name, err, told, then, tc.told, tc.then)
			}
			if got := strings.Count(log.String(), "started again on all nodes"); got != tc.logged {
				t.Errorf("%s: it is logged %d times:\n%s", name, got, log)
			}
		})
	}
}

// TestNodesStartAfterTheLastEnd has a program that takes no notice of SIGTERM on a worker,
// and fails on the chief, or hangs there: it is not started again before it was killed.
func TestNodesStartAfterTheLastEnd(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var ended, again time.Time
			chief, _ := simulate(t, func(p *simProgram) int {
				if p.variable("TRAINERD_ATTEMPT") != "1" {
					again = time.Now()
				} else if p.sleep(10 * time.Second); hangs {
					p.sleep(time.Hour)
				}
				return 1
			})
			worker, _ := simulate(t, func(p *simProgram) int {
				if p.sleepDeaf(time.Hour); ended.IsZero() {
					ended = time.Now()
				}
				return 0
			})
			chief.Nodes, worker.Nodes, worker.Node, worker.Logdir = 2, 2, 1, chief.Logdir
			chief.HangAfter, chief.Restarts.Max = time.Minute, 1
			_, end := begin(t, chief)
			time.Sleep(time.Second)
			_, endWorker := begin(t, worker)
			end()
			endWorker()
			synctest.Wait()
			if again.IsZero() || again.Before(ended) { // both may be at one instant of the bubble's clock
				t.Errorf("hangs %v: the program has ended on the worker at %v, and is started again at %v", hangs, ended, again)
			}
		})
	}
}

// TestNodesSweep has files that were being written when nodes were killed: each node
// removes its own, and the chief also those that it alone writes.
func TestNodesSweep(t *testing.T) {
	left := func(dir string) string { return atomicfile.TempName(filepath.Join(dir, "state.json")) }
	for _, follows := range []bool{false, true} {
		sv, _ := supervise(t, "")
		sv.Nodes, sv.Node = 2, 1
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}
		own, others, chiefs := left(n.folder(1)), left(n.folder(0)), left(n.dir)
		for _, name := range []string{own, others, chiefs} {
			childtest.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
			childtest.Write(t, name, "{")
		}
		childtest.Must(t, (&run{Supervisor: sv, log: discard, logdir: sv.Logdir, follows: follows}).joinNodes())
		for name, want := range map[string]bool{own: false, others: true, chiefs: follows} {
			if _, err := os.Stat(name); (err == nil) != want {
				t.Errorf("follows %v: %s: %v", follows, name, err)
			}
		}
	}
}

// TestNodesCannotSweep has a disk that does not remove such files: each node says so, and joins.
func TestNodesCannotSweep(t *testing.T) {
	for _, follows := range []bool{false, true} {
		sv, _ := supervise(t, "")
		log := newScreen()
		sv.Nodes, sv.Node = 2, 1
		picky(sv, func(op, _ string) bool { return op == "remove" })
		childtest.Write(t, atomicfile.TempName(filepath.Join(sv.Logdir, nodesDir, "node1", "state.json")), "{")
		childtest.Must(t, (&run{Supervisor: sv, log: logTo(log), logdir: sv.Logdir, follows: follows}).joinNodes())
		if !strings.Contains(log.String(), "cannot remove what a killed run has left") {
			t.Errorf("follows %v: the log:\n%s", follows, log)
		}
	}
}

// TestNodesAfterRemoval has a logdir that was made again: a worker tells its state again,
// and the chief waits for that before it takes it that nobody runs the program.
func TestNodesAfterRemoval(t *testing.T) {
	// When the chief has seen that, before, and once it waits for the worker.
	for _, later := range []time.Duration{1100 * time.Millisecond, 0, -300 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) { testNodesAfterRemoval(t, later) })
	}
}

func testNodesAfterRemoval(t *testing.T, later time.Duration) {
	var ended, again time.Time
	chief, _ := simulate(t, func(p *simProgram) int {
		if p.variable("TRAINERD_ATTEMPT") != "1" {
			again = time.Now()
			return 0
		}
		p.sleep(10300 * time.Millisecond) // not when a node looks
		remove := func() {
			childtest.Must(t, os.RemoveAll(filepath.Join(p.variable("TRAINERD_LOGDIR"), nodesDir)))
			childtest.Must(t, os.Remove(filepath.Join(p.variable("TRAINERD_LOGDIR"), lock.LockFile)))
		}
		if later < 0 {
			time.AfterFunc(-later, remove)
			return 1
		}
		remove()
		p.sleep(later)
		return 1
	})
	worker, _ := simulate(t, func(p *simProgram) int {
		if p.sleepDeaf(time.Hour); ended.IsZero() {
			ended = time.Now()
		}
		return 0
	})
	chief.Nodes, worker.Nodes, worker.Node, worker.Logdir = 2, 2, 1, chief.Logdir
	worker.ScanEvery = 1500 * time.Millisecond
	_, end := begin(t, chief)
	time.Sleep(time.Second)
	_, endWorker := begin(t, worker)
	if _, err := end(); err != nil {
		t.Error(err)
	}
	if endWorker(); again.IsZero() || again.Before(ended) {
		t.Errorf("the program has ended on the worker at %v, and is started again at %v", ended, again)
	}
}

// TestChiefNodeOfNoChief has a job whose chief has gone: none of its nodes leads it.
func TestChiefNodeOfNoChief(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, nodesDir, "job.json"), `{"chief": "another life", "node": 3}`)
	if n := ChiefNode(dir); n != 0 {
		t.Errorf("node %d leads it", n)
	}
}
