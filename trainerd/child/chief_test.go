//go:build unix

package child

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	lock "github.com/trainerd/trainerd/trainerd/logdir"
)

// TestAwaitParts has a node that does not end its part: it is given the time that it takes
// to kill that, and at a stop what is left of the chief's, but for a tenth.
func TestAwaitParts(t *testing.T) {
	const whole = 100*time.Second + newsTime + leftoverGrace
	for _, tc := range []struct {
		since   time.Duration // the end began; negative for none
		stopped bool
		want    time.Duration
	}{{-1, false, whole}, {10 * time.Second, false, whole}, {10 * time.Second, true, 80 * time.Second}, {200 * time.Second, true, newsTime}} {
		synctest.Test(t, func(t *testing.T) {
			r := nodesOf(t, nodeState{start: start{Chief: lifeOf(lock.Holder{})}, Phase: nodeRunning})
			if tc.since >= 0 {
				r.attempt.ending = &ending{begun: time.Now().Add(-tc.since)}
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if tc.stopped {
				stop()
			}
			begun := time.Now()
			if r.awaitParts(ctx); time.Since(begun) != tc.want {
				t.Errorf("%+v: it took %v", tc, time.Since(begun))
			}
		})
	}
}

// TestStopOnFullDisk has a chief that is stopped while the disk does not take that its program has
// ended: it does not wait for a node that cannot know it.
func TestStopOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := nodesOf(t, nodeState{start: start{Chief: lifeOf(lock.Holder{})}, Phase: nodeRunning})
		r.nodes.disk = childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: r.logdir, Fails: func(op, _ string) bool { return op == "create" }}
		r.nodes.states, r.nodes.unsent = map[string]any{}, map[string]error{}
		r.publish(nodeEnded, "")
		ctx, stop := context.WithCancel(t.Context())
		stop()
		r.attempt.ending = &ending{begun: time.Now()}
		begun := time.Now()
		if r.awaitParts(ctx); time.Since(begun) != r.grace()*9/10 {
			t.Errorf("it took %v of %v", time.Since(begun), r.grace())
		}
	})
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
		childtest.Write(t, filepath.Join(sv.Logdir, nodesDir, "job.json", "x"), "x")
		if _, err := sv.Run(t.Context()); err != nil || !strings.Contains(log.String(), "cannot send instructions to the other nodes") {
			t.Errorf("the chief: %v; log:\n%s", err, log)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		sv, log := simulateFollower(t, func(p *simProgram) int { p.sleep(time.Hour); return 0 })
		childtest.Write(t, filepath.Join(sv.Logdir, nodesDir, "node1", "state.json", "x"), "x")
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
			for name, state := range map[string]any{"job.json": jobState{start: before, Phase: nodeRunning}, "node1/state.json": nodeState{start: before, Phase: nodeRunning}} {
				childtest.Write(t, filepath.Join(sv.Logdir, nodesDir, name), "")
				childtest.Must(t, writeJSON(nil, filepath.Join(sv.Logdir, nodesDir, name), state))
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := sv.grace() + newsTime + leftoverGrace
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

// TestChiefTakesTheLastSave has a node on which the program of an earlier chief saves before
// it ends: the next start continues from that.
func TestChiefTakesTheLastSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var given []string
		sv, _ := simulate(t, func(p *simProgram) int {
			given = append(given, p.variable("TRAINERD_STEP"))
			return 0
		})
		sv.Nodes = 2
		n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir)}, start{"elsewhere/7/1", 3}
		tellState(t, n, 1, nodeState{start: before, Phase: nodeRunning})
		childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-3"), "weights")
		_, end := begin(t, sv)
		time.Sleep(3 * time.Second)
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-7"), "weights")
		tellState(t, n, 1, nodeState{start: before, Phase: nodeEnded})
		if _, err := end(); err != nil || !slices.Equal(given, []string{"7"}) {
			t.Errorf("%v; the starts continue from %q", err, given)
		}
	})
}

// TestChiefCannotStartAgain has a program that cannot be started again on the chief, while another
// node has begun that start: the next one comes after it has ended there.
func TestChiefCannotStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{count: 2}
		var sv *Supervisor
		var ended, again time.Time
		sv, _ = simulate(t, func(p *simProgram) int {
			if p.variable("TRAINERD_ATTEMPT") != "1" {
				again = time.Now()
				return 0
			}
			sv.System.(*simulated).fails = errors.New("no such program")
			return 1
		})
		sv.Nodes, n.dir = 2, filepath.Join(sv.Logdir, nodesDir)
		starts := 0
		sv.Observer = whenStarted{nobody{}, func() {
			if starts++; starts == 2 {
				tellState(t, n, 1, nodeState{start: start{n.job().Chief, 2}, Phase: nodeRunning})
			}
		}}
		_, end := begin(t, sv)
		pass(10 * time.Second)
		if j := n.job(); j.Attempt != 2 || j.Phase != nodeEnded {
			t.Errorf("it is told %+v", j)
		}
		sv.System.(*simulated).fails, ended = nil, time.Now()
		tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeEnded})
		if exit, err := end(); err != nil || exit.Attempt != 3 || again.Before(ended) {
			t.Errorf("Run = %+v, %v; it has ended at %v, and is started again at %v", exit, err, ended, again)
		}
	})
}

// TestFollowerComesBack has a worker whose trainerd was killed, with its program, while the
// chief runs the start: the chief learns that it has ended there, and the program is not
// started before the next start.
func TestFollowerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts []string
		sv, _ := simulateFollower(t, func(p *simProgram) int {
			starts = append(starts, p.variable("TRAINERD_ATTEMPT"))
			p.sleep(time.Hour)
			return 0
		})
		n := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), count: 2}
		tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeRunning})
		stop, end := begin(t, sv)
		pass(5 * time.Second)
		if s := n.others()[1]; s.start != n.job().start || s.Phase != nodeEnded || s.Cause != Preempted {
			t.Errorf("the chief is told %+v", s)
		}
		tellJob(t, sv.Logdir, func(j *jobState) { j.Attempt = 2 })
		pass(5 * time.Second)
		if stop(); !slices.Equal(starts, []string{"2"}) {
			t.Errorf("starts %v, want the second alone", starts)
		}
		end()
	})
}

// TestChiefOnFullDisk has a program that fails on the chief while the disk takes nothing for
// longer than it may take to end it elsewhere: the other node has its time from when it can
// know of the end, and the next start comes after that.
func TestChiefOnFullDisk(t *testing.T) {
	for _, ends := range []bool{true, false} { // the program, on the other node, in its time
		synctest.Test(t, func(t *testing.T) {
			n := &nodes{}
			var full atomic.Bool
			var again time.Time
			sv, log := simulate(t, func(p *simProgram) int {
				if p.variable("TRAINERD_ATTEMPT") != "1" {
					again = time.Now()
					return 0
				}
				tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeRunning})
				p.sleep(5 * time.Second)
				full.Store(true)
				return 1
			})
			picky(sv, func(op, below string) bool {
				return full.Load() && op == "create" && strings.HasPrefix(below, nodesDir)
			})
			sv.Nodes, sv.Grace, n.dir = 2, 10*time.Second, filepath.Join(sv.Logdir, nodesDir)
			limit := sv.grace() + newsTime + leftoverGrace
			_, end := begin(t, sv)
			pass(5*time.Second + 2*limit)
			if p := n.job().Phase; p != nodeRunning || !again.IsZero() {
				t.Fatalf("on a full disk it is told %s; started again at %v", p, again)
			}
			full.Store(false)
			pass(time.Second)
			told, over := n.job().Phase, time.Now().Add(limit)
			if pass(limit / 2); ends {
				tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeEnded})
				over = time.Now()
			}
			end()
			if late := again.Sub(over); told != nodeEnded || late < -2*time.Second || late > 3*time.Second {
				t.Errorf("it is told %s, and started again %v after the end", told, late)
			}
			if got := strings.Contains(log.String(), "continuing without it"); got == ends {
				t.Errorf("the program ends: %v; the log:\n%s", ends, log)
			}
		})
	}
}

// TestChiefWithoutNews has a chief whose disk takes no instructions: it starts the program once,
// and again only when the other node can learn of it, however often it would have failed alone.
func TestChiefWithoutNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{}
		var full atomic.Bool
		full.Store(true)
		starts := 0
		sv, log := simulate(t, func(p *simProgram) int {
			if starts++; !full.Load() {
				return 0
			}
			p.sleep(5 * time.Second)
			return 1 // it waits for its part on the other node in vain
		})
		picky(sv, func(op, below string) bool {
			return full.Load() && op == "create" && strings.HasPrefix(below, nodesDir+"/.")
		})
		sv.Nodes, sv.Restarts, n.dir = 2, Restarts{Max: 3, Backoff: time.Second, MaxBackoff: time.Second}, filepath.Join(sv.Logdir, nodesDir)
		_, end := begin(t, sv)
		pass(time.Hour)
		if starts != 1 || strings.Count(log.String(), `for="the disk to take what the other nodes have to know"`) < 100 {
			t.Errorf("on a full disk it has started %d times; the log:\n%s", starts, log)
		}
		full.Store(false)
		if exit, err := end(); err != nil || exit.Cause != Completed || starts != 2 {
			t.Errorf("Run = %+v, %v after %d starts", exit, err, starts)
		}
	})
}
