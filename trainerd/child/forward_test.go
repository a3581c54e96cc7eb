//go:build unix

package child

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A program that reports on a worker's node alone has its whole curve, and its steps count:
// also the last ones, which come after the chief's part has ended, and those of a start
// that fails.
func TestNodesReportOnAWorker(t *testing.T) {
	for name, tc := range map[string]struct {
		chief, worker string
		attempt       int
	}{
		"to the end":           {"await part1", "steps 1 5;write part1;pause;steps 6 9", 1},
		"one report":           {"await part1", "write part1;pause;steps 9 9", 1},
		"the worker's fails":   {"await there1;sleep|await part1", "steps 1 5;intact ckpt-4.safetensors;write there1;exit 1|resume 9;write part1", 2},
		"the chief's is hit":   {"await there1;kill 9|await part1", "steps 1 5;intact ckpt-4.safetensors;write there1;sleep|resume 9;write part1", 2},
		"lines without points": {"say step=1;say step=2;await part1", "steps 1 9;write part1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			chief := join(t, logdir, 1, "env ATTEMPT;"+tc.chief)
			chief.await(t, `ATTEMPT is "1"`)
			worker := join(t, logdir, 0, tc.worker)
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != tc.attempt {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
			}
			if chief.exit.Step != 9 {
				t.Errorf("the chief has ended at step %d, want 9", chief.exit.Step)
			}
			want := count(1, 9)
			if name == "one report" {
				want = []int64{9}
			}
			if got := curve(t, logdir, "loss"); !slices.Equal(got, want) {
				t.Errorf("curve of the steps %v, want %v", got, want)
			}
			if left, _ := filepath.Glob(filepath.Join(logdir, nodesDir, "*.reports*")); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// A stop waits for the save of the node that has the first rank, which need not be the
// chief's.
func TestNodesStopSavesOnAWorker(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	chief := join(t, logdir, 1, "polite x")
	chief.await(t, "ready")
	worker := join(t, logdir, 0, "steps 1 5;deaf;say ready;await x;pause;write ckpt-5")
	worker.await(t, "ready")
	await(t, "the chief has the steps", func() bool { return len(curve(t, logdir, "loss")) == 5 })
	chief.stop()
	if exit, err := chief.end(t); err != nil || exit.Cause != Stopped || !slices.Contains(marks(t, logdir), "CHECKPOINT@5") {
		t.Errorf("the chief: %+v, %v; marks %v", exit, err, marks(t, logdir))
	}
}

// Files of reports are read whole and in order, however they are divided, written in part,
// or continued after the disk was full.
func TestForwarded(t *testing.T) {
	s := start{Chief: "host/1/2", Attempt: 3}
	n := &nodes{dir: t.TempDir(), count: 2, own: 1}
	w, f := &forwarder{}, &forwarded{}
	name := func(part int) string { return n.reportsFile(s, 1, part) }
	at := time.Unix(1_800_000_000, 5)
	for i := range int64(4) {
		w.add(&Report{Step: i, Time: at, Values: []Value{{"val/loss", 0.1}, {"nan", math.NaN()}, {"inf", math.Inf(-1)}}})
		if i == 1 {
			dir := n.dir
			n.dir = filepath.Join(dir, "missing")
			if err := w.send(n, s); err == nil {
				t.Error("it was written into a folder that is missing")
			}
			n.dir = dir
			continue
		}
		if i == 2 {
			w.size = maxForwarded // the next file begins after it
		}
		must(t, w.send(n, s))
		f.read(name)
	}
	w.waiting = []byte(`not a report` + "\n" + `{"step": 4, "values": [{"tag": "loss", "value": "?"}]}` + "\n" + `{"step": 9`)
	must(t, w.send(n, s))
	f.read(name)
	last := f.reports[len(f.reports)-1]
	f.reports = f.reports[:len(f.reports)-1]
	if loss, ok := last.Value("loss"); last.Step != 4 || !ok || !math.IsNaN(loss) {
		t.Errorf("a number that is none: %+v", last)
	}
	var got []int64
	for _, r := range f.reports {
		inf, _ := r.Value("inf")
		nan, _ := r.Value("nan")
		if got = append(got, r.Step); !r.Time.Equal(at) || !math.IsInf(inf, -1) || !math.IsNaN(nan) || r.Values[0] != (Value{"val/loss", 0.1}) {
			t.Errorf("report %+v", r)
		}
	}
	if !slices.Equal(got, count(0, 3)) {
		t.Errorf("reports of the steps %v", got)
	}
	if _, err := os.Stat(name(0)); err == nil {
		t.Error("the file that was read is still there")
	}
}

// What a full disk did not take is kept for the next time, and the log says so once.
func TestForwardOnFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	sv, _ := supervise(t, "")
	sv.Nodes, sv.Node = 2, 1
	log := new(bytes.Buffer)
	r := &run{Supervisor: sv, log: slog.New(slog.NewTextHandler(log, nil)), logdir: sv.Logdir}
	must(t, os.MkdirAll(sv.Logdir, 0o777))
	must(t, r.joinNodes())
	f := &follower{run: r}
	file := r.nodes.reportsFile(f.at, 1, 0)
	must(t, os.Symlink("/dev/full", file))
	for i := range int64(3) {
		f.passes.add(&Report{Step: i})
		f.forward()
	}
	if n := strings.Count(log.String(), "cannot pass the reports"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, log)
	}
	must(t, os.Remove(file))
	f.forward()
	passed := &forwarded{}
	passed.read(func(part int) string { return r.nodes.reportsFile(f.at, 1, part) })
	if len(passed.reports) != 3 {
		t.Errorf("the chief has %d reports", len(passed.reports))
	}
}
