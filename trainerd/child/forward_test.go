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
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
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
		w.add(&Report{Step: i, Time: at, Values: []Value{{"val/loss", 0.1234567890123456}, {"nan", math.NaN()}, {"inf", math.Inf(-1)}}})
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
			if w.part != 0 {
				t.Error("a file that is not full is continued in another one")
			}
			w.size = maxForwarded // the next file begins after it
		}
		childtest.Must(t, w.send(n, s))
		f.read(name)
	}
	w.waiting = []byte(`not a report` + "\n" + `{"step": 4, "values": [{"tag": "loss", "value": "?"}]}` + "\n" + `{"step": 9`)
	childtest.Must(t, w.send(n, s))
	f.read(name)
	last := f.reports[len(f.reports)-1]
	f.reports = f.reports[:len(f.reports)-1]
	if loss, ok := last.Value("loss"); last.Step != 4 || !ok || !math.IsNaN(loss) {
		t.Errorf("a number that is none: %+v", last)
	}
	w.waiting = []byte(`, "values": []}` + "\n")
	childtest.Must(t, w.send(n, s))
	f.read(name)
	if last := len(f.reports) - 1; f.reports[last].Step != 9 {
		t.Errorf("a line that came in two parts: %+v", f.reports[last])
	} else {
		f.reports = f.reports[:last]
	}
	var got []int64
	for _, r := range f.reports {
		inf, _ := r.Value("inf")
		nan, _ := r.Value("nan")
		if got = append(got, r.Step); !r.Time.Equal(at) || !math.IsInf(inf, -1) || !math.IsNaN(nan) || r.Values[0] != (Value{"val/loss", 0.1234567890123456}) {
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

// A report that says no time has that of its arrival on the worker. Where the disk takes
// nothing for long, the memory for what waits is limited.
func TestForwardedTimeAndSize(t *testing.T) {
	w, before := &forwarder{}, time.Now()
	w.add(&Report{Step: 1})
	if r := decodeReport(w.waiting); r.Time.Before(before) || r.Time.After(time.Now()) {
		t.Errorf("it has the time %v", r.Time)
	}
	for _, room := range []int{1, 0} {
		w.waiting = make([]byte, maxForwarded-room)
		if w.add(&Report{Step: 1}); (len(w.waiting) > maxForwarded) != (room > 0) {
			t.Errorf("with room for %d bytes: %d bytes wait", room, len(w.waiting))
		}
	}
}

// A node leads once it has reported two steps, and the first of them was read ten scans ago.
func TestWhoLeads(t *testing.T) {
	for _, tc := range []struct {
		last    int64
		after   time.Duration
		want    bool
		because string
	}{
		{2, 10 * time.Second, true, "two steps, ten looks ago"},
		{2, 10*time.Second - 1, false, "two steps, not yet ten looks ago"},
		{1, time.Hour, false, "one step"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start{Chief: "host/1/2", Attempt: 3}
			n := &nodes{dir: t.TempDir(), own: 1}
			w, f := &forwarder{}, &forwarded{}
			report := func(step int64) {
				if step > 0 {
					w.add(&Report{Step: step})
				}
				childtest.Must(t, w.send(n, s))
				f.read(func(part int) string { return n.reportsFile(s, 1, part) })
			}
			report(0) // the file is there
			time.Sleep(time.Minute)
			report(1)
			if f.canBeSource(time.Second) {
				t.Error("one report, and it leads")
			}
			time.Sleep(5 * time.Second)
			report(tc.last)
			time.Sleep(tc.after - 5*time.Second)
			if got := f.canBeSource(time.Second); got != tc.want {
				t.Errorf("%s: leads %v", tc.because, got)
			}
		})
	}
}

// The chief's own reports count where they come before another node is known to lead, and
// where nobody reports, nobody leads.
func TestOwnReportsFirst(t *testing.T) {
	for _, tc := range []struct{ passed, own int64 }{{0, 0}, {1, 3}, {2, 3}} {
		synctest.Test(t, func(t *testing.T) {
			n := &nodes{count: 2}
			sv, log := simulate(t, func(p *simProgram) int {
				w := &forwarder{}
				for step := range tc.passed {
					w.add(&Report{Step: step + 90, Values: []Value{{"loss", 1}}})
				}
				childtest.Must(t, w.send(&nodes{dir: n.dir, own: 1}, n.job().start))
				p.sleep(5 * time.Second)
				for step := range tc.own {
					p.say("step=%d loss=1", step)
				}
				p.sleep(time.Minute)
				return 0
			})
			sv.Nodes, n.dir = n.count, filepath.Join(sv.Logdir, nodesDir)
			if _, err := sv.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(0, tc.own-1)) || strings.Contains(log.String(), "reports on another node") {
				t.Errorf("%d were passed on: curve of the steps %v; the log:\n%s", tc.passed, got, log)
			}
		})
	}
}

// Old checkpoints stay while it is not known whose reports count: they may say which is best.
func TestDeletionAwaitsReports(t *testing.T) {
	for _, tc := range []struct {
		passed      int64
		early, late []string
	}{
		{0, []string{"ckpt-2"}, []string{"ckpt-2"}},
		{1, []string{"ckpt-1", "ckpt-2"}, []string{"ckpt-1", "ckpt-2"}},
		{2, []string{"ckpt-1", "ckpt-2"}, []string{"ckpt-2"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &nodes{count: 2}
			sv, log := simulate(t, func(p *simProgram) int {
				w := &forwarder{}
				for step := range tc.passed {
					w.add(&Report{Step: step, Values: []Value{{"loss", 1}}})
				}
				childtest.Must(t, w.send(&nodes{dir: n.dir, own: 1}, n.job().start))
				for _, name := range []string{"ckpt-1", "ckpt-2"} {
					p.sleep(2 * time.Second)
					childtest.Write(t, filepath.Join(p.variable("TRAINERD_LOGDIR"), name), "weights")
				}
				p.sleep(time.Hour)
				return 0
			})
			sv.Nodes, sv.Retention = n.count, []retention.Policy{retention.Last(1)}
			n.dir = filepath.Join(sv.Logdir, nodesDir)
			stop, end := begin(t, sv)
			for _, want := range [][]string{tc.early, tc.late} {
				time.Sleep(8*time.Second + time.Millisecond)
				if got := checkpointsIn(t, sv.Logdir); !slices.Equal(got, want) {
					t.Errorf("%d were passed on: there are %v, want %v", tc.passed, got, want)
				}
			}
			stop()
			end()
			if got := strings.Count(log.String(), "reports on another node"); got != int(min(tc.passed, 1)) {
				t.Errorf("it is logged %d times:\n%s", got, log)
			}
		})
	}
}

// A loss of NaN from another node comes before the deletion that has waited for its reports:
// the checkpoint to go back to is still there.
func TestDeletionAfterNaN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{count: 2}
		var steps []string
		sv, log := simulate(t, func(p *simProgram) int {
			if steps = append(steps, p.variable("TRAINERD_STEP")); len(steps) > 1 {
				return 0
			}
			w := &forwarder{}
			w.add(&Report{Step: 1, Values: []Value{{"loss", 1}}})
			w.add(&Report{Step: 4, Values: []Value{{"loss", math.NaN()}}})
			childtest.Must(t, w.send(&nodes{dir: n.dir, own: 1}, n.job().start))
			for _, name := range []string{"ckpt-1", "ckpt-4"} {
				file := filepath.Join(p.variable("TRAINERD_LOGDIR"), name)
				childtest.Write(t, file, "weights")
				childtest.Must(t, os.Chtimes(file, time.Now(), time.Now()))
				p.sleep(2 * time.Second)
			}
			p.sleep(time.Hour)
			return 0
		})
		sv.Nodes, sv.Retention, sv.MaxRewinds = n.count, []retention.Policy{retention.Last(1)}, 1
		n.dir = filepath.Join(sv.Logdir, nodesDir)
		if _, err := sv.Run(t.Context()); err != nil || !slices.Equal(steps, []string{"", "1"}) {
			t.Errorf("%v; starts from %q, want from none and from 1; log:\n%s", err, steps, log)
		}
	})
}

// The reports of one node count, though others pass on theirs.
func TestOneSpeaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{count: 3}
		sv, _ := simulate(t, func(p *simProgram) int {
			for step := range int64(30) {
				for node := 1; node < n.count; node++ {
					if node == 1 || step > 20 {
						w := &forwarder{}
						w.add(&Report{Step: step, Values: []Value{{"loss", float64(node)}}})
						childtest.Must(t, w.send(&nodes{dir: n.dir, own: node}, n.job().start))
					}
				}
				p.sleep(time.Second)
			}
			if speaker := n.job().Speaker; speaker == nil || *speaker != 1 {
				t.Errorf("the nodes are told that %v reports, want 1", speaker)
			}
			return 0
		})
		sv.Nodes, n.dir = n.count, filepath.Join(sv.Logdir, nodesDir)
		if exit, err := sv.Run(t.Context()); err != nil || exit.Step != 29 {
			t.Errorf("Run = %+v, %v", exit, err)
		}
		if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(0, 29)) {
			t.Errorf("curve of the steps %v", got)
		}
	})
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
	childtest.Must(t, os.MkdirAll(sv.Logdir, 0o777))
	childtest.Must(t, r.joinNodes())
	f := &follower{run: r}
	file := r.nodes.reportsFile(f.at, 1, 0)
	childtest.Must(t, os.Symlink("/dev/full", file))
	for i := range int64(3) {
		f.passes.add(&Report{Step: i})
		f.forward()
	}
	if n := strings.Count(log.String(), "cannot pass the reports"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, log)
	}
	childtest.Must(t, os.Remove(file))
	f.forward()
	passed := &forwarded{}
	passed.read(func(part int) string { return r.nodes.reportsFile(f.at, 1, part) })
	if len(passed.reports) != 3 {
		t.Errorf("the chief has %d reports", len(passed.reports))
	}
}

// TestStopWhileNodesEnd has a chief that is stopped while it waits for the end of a start on
// another node, which has reported all: what that has reported, and reports then, comes into
// the curve, also where that node does not end in time.
func TestStopWhileNodesEnd(t *testing.T) {
	for _, ends := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			n, w := &nodes{own: 1}, forwarder{}
			sv, log := simulate(t, func(*simProgram) int {
				tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeRunning})
				return 1
			})
			sv.Nodes, sv.Grace, n.dir = 2, time.Minute, filepath.Join(sv.Logdir, nodesDir)
			report := func(first, last int64) {
				for step := first; step <= last; step++ {
					w.add(&Report{Step: step, Values: []Value{{"loss", 1}}})
				}
				childtest.Must(t, w.send(n, n.job().start))
			}
			stop, end := begin(t, sv)
			time.Sleep(2 * time.Second)
			report(1, 4)
			stop()
			time.Sleep(2 * time.Second)
			report(5, 6)
			if ends {
				tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeEnded})
			}
			if exit, err := end(); err != nil || exit.Attempt != 1 {
				t.Errorf("Run = %+v, %v; log:\n%s", exit, err, log)
			}
			if got := curve(t, sv.Logdir, "loss"); !slices.Equal(got, count(1, 6)) {
				t.Errorf("the curve has the steps %v; log:\n%s", got, log)
			}
		})
	}
}
