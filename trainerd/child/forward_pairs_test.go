//go:build unix

package child

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// What a program reports on a worker's node counts for the chief's checkpoints and curves
// like what it reports on its own.
func TestForwardedReportsCount(t *testing.T) {
	for _, tc := range []struct {
		name, chief, worker string
		set                 func(*Supervisor)
		step                string // from which the last start continues
		left, aside         []string
	}{
		{"rewind", "await there1;sleep",
			"steps 1 10;write ckpt-10;steps 11 20;write ckpt-21;say step=21 loss=nan;write there1;sleep",
			func(sv *Supervisor) { sv.MaxRewinds = 1 }, "10", []string{"ckpt-10"}, []string{"ckpt-21"}},
		{"the best stays", "await there1;exit 1",
			"say step=5 loss=0.1;write ckpt-5;await trainerd.manifests/5.json;say step=10 loss=0.9;write ckpt-10;await trainerd.manifests/10.json;say step=15 loss=0.5;write ckpt-15;write there1;sleep",
			func(sv *Supervisor) {
				sv.Retention = []retention.Policy{retention.Last(1), retention.Best{Metric: "loss", N: 1}}
			}, "15", []string{"ckpt-15", "ckpt-5"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			chief := join(t, logdir, 1, "env STEP;"+tc.chief+"|env STEP;await part1", tc.set)
			chief.await(t, `STEP is ""`)
			worker := join(t, logdir, 0, tc.worker+"|resume 25;write part1", tc.set)
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
			}
			if want := `STEP is "` + tc.step + `"`; !strings.Contains(chief.String(), want) {
				t.Errorf("want %s in:\n%s", want, chief)
			}
			if got := checkpointsIn(t, logdir); !slices.Equal(got, tc.left) {
				t.Errorf("checkpoints %v, want %v", got, tc.left)
			}
			if got := checkpointsIn(t, filepath.Join(logdir, "damaged", "*")); !slices.Equal(got, tc.aside) {
				t.Errorf("moved aside are %v, want %v", got, tc.aside)
			}
		})
	}
}

// A curve whose points come from another node continues when the chief is killed and that
// node takes its place.
func TestForwardedReportsFailOver(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	cmd := trainerdCommand(logdir, "while true; do sleep 0.1; done")
	cmd.Env = append(cmd.Env, asNode+"=0 of 2")
	childtest.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
	worker := join(t, logdir, 1, "env STEP;resume 6;write ckpt-4;await go;steps 7 9")
	worker.await(t, `STEP is ""`)
	await(t, "the chief has the points and the checkpoint", func() bool {
		return len(curve(t, logdir, "loss")) == 6 && slices.Contains(marks(t, logdir), "CHECKPOINT@4")
	})
	cmd.Process.Kill()
	cmd.Wait()
	worker.await(t, `STEP is "4"`)
	childtest.Must(t, os.WriteFile(filepath.Join(logdir, "go"), nil, 0o666))
	if exit, err := worker.end(t); err != nil || exit.Cause != Completed {
		t.Errorf("the worker: %+v, %v", exit, err)
	}
	if got := curve(t, logdir, "loss"); !slices.Equal(got, count(1, 9)) {
		t.Errorf("curve of the steps %v, want %v", got, count(1, 9))
	}
}

// Points that a start makes again are dropped in each of TensorBoard's loaders, also where
// one node has reported them and another one reports now, and those of a curve that has no
// new point.
func TestNodesOvertake(t *testing.T) {
	for name, reports := range map[string][2]string{
		"by the chief, then by the worker": {"steps 1 8;say step=8 val=1;say step=8 gone=1", "say ready"},
		"by the worker, then by the chief": {"say ready", "steps 1 8;say step=8 val=1;say step=8 gone=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			second := [2]string{"await part1", "resume 9;say step=9 val=2;write part1"}
			if strings.HasPrefix(reports[1], "steps") {
				second = [2]string{"resume 9;say step=9 val=2;await part1", "write part1"}
			}
			chief := join(t, logdir, 0, reports[0]+";await there1;sleep|"+second[0])
			await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
			worker := join(t, logdir, 1, reports[1]+";write ckpt-4;write there1;await trainerd.manifests/4.json;await go;exit 1|"+second[1])
			await(t, "the chief has the points", func() bool { return len(curve(t, logdir, "gone")) == 1 })
			childtest.Must(t, os.WriteFile(filepath.Join(logdir, "go"), nil, 0o666))
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
			}
			for _, mode := range []tfevents.Purge{tfevents.PurgeExact, tfevents.PurgePython, tfevents.PurgeDataServer} {
				for tag, want := range map[string][]int64{"loss": count(1, 9), "val": {9}, "gone": nil} {
					if got := shownBy(t, logdir, tag, mode); !slices.Equal(got, want) {
						t.Errorf("%v shows %s at %v, want %v", mode, tag, got, want)
					}
				}
			}
		})
	}
}

// shownBy returns the steps at which a loader shows points of a curve.
func shownBy(t *testing.T, logdir, tag string, mode tfevents.Purge) (steps []int64) {
	t.Helper()
	fsys := os.DirFS(logdir)
	runs, err := tfevents.FindRuns(fsys, ".")
	childtest.Must(t, err)
	d := tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: mode})
	for p := range d.Scalars(d.Lookup(tag)) {
		steps = append(steps, p.Step)
	}
	return steps
}

// TestReportAtTheLimit has a program that reports on a worker just before the chief gives up its
// wait for the end there: that is in the curve.
func TestReportAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{own: 1}
		sv, log := simulate(t, func(p *simProgram) int {
			if p.variable("TRAINERD_ATTEMPT") == "1" {
				tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeRunning})
				p.sleep(5 * time.Second)
				return 1
			}
			return 0
		})
		sv.Nodes, sv.Grace, n.dir = 2, 10*time.Second, filepath.Join(sv.Logdir, nodesDir)
		_, end := begin(t, sv)
		pass(5*time.Second + sv.grace() + newsTime + leftoverGrace - 300*time.Millisecond)
		w := forwarder{}
		w.add(&Report{Step: 9, Values: []Value{{"loss", 1}}})
		childtest.Must(t, w.send(n, n.job().start))
		if _, err := end(); err != nil || !strings.Contains(log.String(), "continuing without it") {
			t.Errorf("Run = %v; log:\n%s", err, log)
		}
		if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, []int64{9}) {
			t.Errorf("the curve has the steps %v", got)
		}
	})
}

// TestForwardedFileMadeAgain has somebody delete the file in which a node passes on reports, as
// with the logdir: the node makes it again, and what it has then counts from its beginning.
func TestForwardedFileMadeAgain(t *testing.T) {
	for _, after := range []int64{1, 100} { // less than was read, or more
		n := &nodes{dir: t.TempDir(), own: 1}
		s := start{Chief: "a", Attempt: 1}
		w, f := &forwarder{}, &forwarded{}
		var want []int64
		pass := func(from, to int64) {
			for step := from; step <= to; step++ {
				w.add(&Report{Step: step})
				want = append(want, step)
			}
			childtest.Must(t, w.send(n, s))
			f.read(func(part int) string { return n.reportsFile(s, 1, part) })
		}
		pass(1, 10)
		old := n.reportsFile(s, 1, 0)
		childtest.Must(t, os.Rename(old, old+".gone")) // its inode is not used again
		pass(11, 10+after)
		pass(11+after, 12+after)
		var got []int64
		for _, r := range f.reports {
			got = append(got, r.Step)
		}
		if !slices.Equal(got, want) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
}
