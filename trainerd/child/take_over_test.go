//go:build unix

package child

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestTakeOver has a chief that was killed before it had taken what another node has
// reported, of steps that are in a checkpoint: the next chief takes it, on whichever node.
func TestTakeOver(t *testing.T) {
	for own := range 2 {
		for part := range 2 { // the first one was read, and deleted
			synctest.Test(t, func(t *testing.T) {
				sv, _ := simulate(t, func(p *simProgram) int {
					p.say("step=5 loss=1")
					p.say("step=6 loss=1")
					return 0
				})
				sv.Nodes, sv.Node = 2, own
				n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 1}, start{"elsewhere/7/1", 3}
				tellState(t, n, 1, nodeState{start: before, Phase: nodeEnded})
				childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
				w := forwarder{part: part}
				for step := range int64(4) {
					w.add(&Report{Step: step + 1, Values: []Value{{"loss", 1}}})
				}
				childtest.Must(t, w.send(n, before))
				childtest.Write(t, filepath.Join(sv.Logdir, "ckpt-4"), "weights")
				if _, err := sv.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(1, 6)) {
					t.Errorf("node %d, part %d: the curve has the steps %v", own, part, got)
				}
				if left, _ := filepath.Glob(filepath.Join(n.dir, "*.reports*")); len(left) > 0 {
					t.Errorf("left over are %v", left)
				}
			})
		}
	}
}

// pendingEvents is a disk that notes what it was not yet to make durable of events, when
// reports are removed.
type pendingEvents struct {
	atomicfile.FS
	pending   bool
	atRemoval func(pending bool)
}

func (d *pendingEvents) Create(name string) (atomicfile.File, error) {
	f, err := d.FS.Create(name)
	if err == nil && strings.Contains(name, "tfevents") {
		f = &pendingFile{f, d}
	}
	return f, err
}

func (d *pendingEvents) Remove(name string) error {
	if strings.Contains(name, ".reports") {
		d.atRemoval(d.pending)
	}
	return d.FS.Remove(name)
}

type pendingFile struct {
	atomicfile.File
	disk *pendingEvents
}

func (f *pendingFile) Write(b []byte) (int, error) {
	f.disk.pending = true
	return f.File.Write(b)
}

func (f *pendingFile) Sync() error {
	f.disk.pending = false
	return f.File.Sync()
}

// What a chief takes over replaces points that an earlier one has made durable, so it is
// durable before the reports go from which it could be taken again.
func TestTakeOverIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sv, _ := simulate(t, func(*simProgram) int { return 0 })
		removals := 0
		disk := &pendingEvents{FS: atomicfile.OrOS(nil)}
		disk.atRemoval = func(pending bool) {
			removals++
			if got := curve(t, sv.Logdir, "loss"); pending || !slices.Equal(got, count(1, 4)) {
				t.Errorf("when reports go, the curve has the steps %v, and is durable: %v", got, !pending)
			}
		}
		sv.FS, sv.Nodes, sv.Node = disk, 2, 0
		n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 1}, start{"elsewhere/7/1", 3}
		tellState(t, n, 1, nodeState{start: before, Phase: nodeEnded})
		childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
		w := forwarder{}
		for step := range int64(4) {
			w.add(&Report{Step: step + 1, Values: []Value{{"loss", 1}}})
		}
		childtest.Must(t, w.send(n, before))
		if _, err := sv.Run(t.Context()); err != nil || removals == 0 {
			t.Errorf("Run: %v; reports were removed %d times", err, removals)
		}
	})
}

// TestTakeOverTheBest has a chief that was killed before it had taken what another node has
// reported of the best checkpoint, by its own step or by the one before: the next chief keeps
// that.
func TestTakeOverTheBest(t *testing.T) {
	for _, counted := range []int64{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			sv, _ := simulate(t, func(p *simProgram) int {
				p.say("step=%d loss=1", 12-counted)
				childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), "ckpt-12"), "weights")
				return 0
			})
			sv.Nodes, sv.Retention = 2, []retention.Policy{retention.Last(1), retention.Best{Metric: "loss", N: 1}}
			n, before := &nodes{dir: filepath.Join(sv.Logdir, nodesDir), own: 1}, start{"elsewhere/7/1", 3}
			tellState(t, n, 1, nodeState{start: before, Phase: nodeEnded})
			childtest.Must(t, writeJSON(nil, n.jobFile(), jobState{start: before, Phase: nodeRunning}))
			w := forwarder{}
			for i, loss := range []float64{0.5, 0.1, 0.9} {
				step := 3 * int64(i+1)
				childtest.Write(t, filepath.Join(sv.Logdir, fmt.Sprint("ckpt-", step)), "weights")
				w.add(&Report{Step: step - counted, Values: []Value{{"loss", loss}}})
			}
			childtest.Must(t, w.send(n, before))
			if _, err := sv.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := checkpointsIn(t, sv.Logdir); !slices.Equal(got, []string{"ckpt-12", "ckpt-6"}) {
				t.Errorf("the best was reported at step %d: left are %v", 6-counted, got)
			}
		})
	}
}

// TestTakesOverPausedJob has a job that is paused when its chief goes, and a node that has not ended the program yet: the
// new chief says at once who it is, and that the job is paused.
func TestTakesOverPausedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sv, log := simulate(t, func(*simProgram) int { starts++; return 0 })
		sv.Nodes, sv.Node = 3, 1
		release := lead(t, sv.Logdir)
		n := &nodes{own: 1, dir: filepath.Join(sv.Logdir, nodesDir)}
		tellJob(t, sv.Logdir, func(j *jobState) { j.Phase, j.Paused = nodeEnded, true })
		tellState(t, n, 2, nodeState{start: n.job().start, Phase: nodeRunning})
		stop, end := begin(t, sv)
		pass(30 * time.Second)
		release()
		pass(10 * time.Second)
		if j := n.job(); j.Node != 1 || !j.Paused || starts > 0 {
			t.Errorf("it says %+v after %d starts\n%s", j, starts, log)
		}
		stop()
		end()
	})
}
