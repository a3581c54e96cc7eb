//go:build unix

package child

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestStoppedBeforeNodesEnd has a chief that is stopped before the start of an earlier chief has
// ended on another node, or in the pause that the earlier one has left: what that node had
// reported, and reports later, is taken by the next chief.
func TestStoppedBeforeNodesEnd(t *testing.T) {
	for _, tc := range []struct {
		paused bool
		other  int // the node
	}{{false, 1}, {true, 1}, {false, 0}} {
		synctest.Test(t, func(t *testing.T) {
			starts := 0
			sv, log := simulate(t, func(p *simProgram) int {
				starts++
				p.say("step=7 loss=1")
				return 0
			})
			sv.Nodes, sv.Node = 2, 1-tc.other
			n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: tc.other}, start{"elsewhere/7/1", 3}
			tellState(t, n, tc.other, nodeState{start: before, Phase: nodeRunning})
			childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning, Paused: tc.paused}))
			w := forwarder{}
			report := func(first, last int64) {
				for step := first; step <= last; step++ {
					w.add(&Report{Step: step, Values: []Value{{"loss", 1}}})
				}
				childtest.Must(t, w.send(n, before))
			}
			report(1, 2)
			for range 2 { // chiefs, and each is stopped
				stop, end := begin(t, sv)
				time.Sleep(3 * time.Second)
				stop()
				if exit, err := end(); err != nil || exit.Cause != Stopped || starts > 0 {
					t.Fatalf("Run = %+v, %v after %d starts", exit, err, starts)
				}
				if j := n.job(); j.Phase != jobStopped || j.Chief == before.Chief {
					t.Errorf("the nodes are told %+v", j)
				}
			}
			report(3, 6)
			tellState(t, n, tc.other, nodeState{start: before, Phase: nodeEnded})
			childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-6"), "weights")
			_, end := begin(t, sv)
			if exit, err := end(); err != nil || exit.Cause != Completed {
				t.Errorf("Run = %+v, %v", exit, err)
			}
			if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(1, 7)) {
				t.Errorf("the curve has the steps %v; log:\n%s", got, log)
			}
			if left, _ := filepath.Glob(filepath.Join(n.dir, "*.reports*")); len(left) > 0 || n.job().Earlier != nil {
				t.Errorf("left over are %v, and %+v", left, n.job())
			}
		})
	}
}

// TestPauseBeforeNodesEnd has a pause that an earlier chief has left, with reports of another
// node: the chief that ends the pause takes them.
func TestPauseBeforeNodesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(p *simProgram) int {
			p.say("step=5 loss=1")
			return 0
		})
		sv.Nodes = 2
		n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 1}, start{"elsewhere/7/1", 3}
		tellState(t, n, 1, nodeState{start: before, Phase: nodeEnded})
		childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning, Paused: true}))
		w := forwarder{}
		for step := range int64(4) {
			w.add(&Report{Step: step + 1, Values: []Value{{"loss", 1}}})
		}
		childtest.Must(t, w.send(n, before))
		childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-4"), "weights")
		_, end := begin(t, sv)
		time.Sleep(time.Minute)
		childtest.Must(t, sv.Resume(t.Context()))
		if _, err := end(); err != nil {
			t.Error(err)
		}
		if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(1, 5)) {
			t.Errorf("the curve has the steps %v", got)
		}
	})
}
