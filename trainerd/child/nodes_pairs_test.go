//go:build unix

package child

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	lock "github.com/trainerd/trainerd/trainerd/logdir"
)

// What the chief does with checkpoints holds on all nodes: both continue from the one
// that it has chosen, and see the same files.
func TestNodesCheckpoints(t *testing.T) {
	const (
		begin = "env STEP;list ckpt-*;"
		chief = "|" + begin + "await part1" // its part ends when the other has done its own
		other = "write there1;sleep|" + begin + "write part1"
	)
	for _, tc := range []struct {
		name, first string // what the chief's program does first
		set         func(*Supervisor)
		step        string   // from which both nodes continue
		left, aside []string // checkpoints
	}{
		{"rewind", "steps 1 10;write ckpt-10;steps 11 20;write ckpt-21;say step=21 loss=nan;sleep",
			func(sv *Supervisor) { sv.MaxRewinds = 1 }, "10", []string{"ckpt-10"}, []string{"ckpt-21"}},
		{"the best stays", "say step=5 loss=0.1;write ckpt-5;say step=10 loss=0.9;write ckpt-10;say step=15 loss=0.5;write ckpt-15;exit 1",
			func(sv *Supervisor) {
				sv.Retention = []retention.Policy{retention.Last(1), retention.Best{Metric: "loss", N: 1}}
			}, "15", []string{"ckpt-15", "ckpt-5"}, nil},
		{"damaged newest", "write ckpt-5;steps 1 5;tear ckpt-9.safetensors;exit 1", func(*Supervisor) {}, "5", []string{"ckpt-5"}, []string{"ckpt-9.safetensors"}},
		{"one name, overwritten by half", "steps 1 5;intact ckpt-last.safetensors;await trainerd.manifests/name-ckpt-last*;steps 6 6;tear ckpt-last.safetensors;exit 1",
			func(*Supervisor) {}, "", []string{"ckpt-last.safetensors"}, []string{"ckpt-last.safetensors"}},
		{"damaged newest of all", "steps 1 9;tear ckpt-9.safetensors;exit 1", func(*Supervisor) {}, "", nil, []string{"ckpt-9.safetensors"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			first := join(t, logdir, 0, begin+"await there1;"+tc.first+chief, tc.set)
			first.await(t, `STEP is ""`)
			worker := join(t, logdir, 1, other, tc.set)
			for _, n := range []*node{first, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
				want := "STEP is \"" + tc.step + "\"\nfound " + strings.Join(tc.left, " ")
				if !strings.HasSuffix(strings.TrimSpace(n.String()), strings.TrimSpace(want)) {
					t.Errorf("node %d: want %q at the end of:\n%s", n.Node, want, n)
				}
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

// A link to a damaged newest checkpoint leads to the newest verified one before the program
// begins again, on whichever node it was made.
func TestNodesLinks(t *testing.T) {
	const (
		again = "|env STEP;where latest;"
		saves = "steps 1 5;intact ckpt-5.safetensors;link latest ckpt-5.safetensors;await trainerd.manifests/5.json;remove latest;" +
			"tear ckpt-9.safetensors;link latest ckpt-9.safetensors;exit 1"
		waits = "write there1;sleep"
	)
	for name, scripts := range map[string][2]string{
		"by the chief":  {"await there1;" + saves + again + "await part1", waits + again + "write part1"},
		"by the worker": {"sleep" + again + "await part1", saves + again + "write part1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			chief := join(t, logdir, 0, scripts[0])
			await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
			worker := join(t, logdir, 1, scripts[1])
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
				if want := "STEP is \"5\"\nlatest leads to ckpt-5.safetensors\n"; !strings.HasSuffix(n.String(), want) {
					t.Errorf("node %d: want %q at the end of:\n%s", n.Node, want, n)
				}
			}
		})
	}
}

// On a share whose locks do not reach other hosts a second host becomes the chief, too.
// The first one ends its program at once, without a save, and leaves the other's workers
// alone.
func TestNodesChiefOnTwoHosts(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	first := join(t, logdir, 0, "polite ckpt-2")
	first.await(t, "ready")
	before := (&nodes{dir: filepath.Join(logdir, nodesDir)}).job()
	other := []byte(`{"host":"elsewhere","pid":1,"start":"2026-01-02T03:04:05Z"}` + "\n")
	childtest.Must(t, os.WriteFile(filepath.Join(logdir, "trainerd.lock"), other, 0o666))
	if exit, err := first.end(t); !is[*lock.LostError](err) || !is[*lock.LockedError](err) {
		t.Errorf("%+v, %v; want that the other host has the logdir", exit, err)
	}
	if got := (&nodes{dir: filepath.Join(logdir, nodesDir)}).job(); got != before || got.Phase != nodeRunning {
		t.Errorf("the other host's workers are told %+v; want what they were told before, %+v", got, before)
	}
	if got := checkpointsIn(t, logdir); len(got) != 0 {
		t.Errorf("the program has saved %v into the other's logdir", got)
	}
}

// A checkpoint has a file of each node, and the chief's program ends before the other has
// written its own: the chief waits for that, and the other is given the time.
func TestNodesLastPart(t *testing.T) {
	for _, tc := range []struct {
		name, chief, other string
		stop               bool
		attempts           int
	}{
		{"complete", "steps 1 5;await m_4;write w_5", "write m_4;await w_5;pause;pause;write m_5", false, 1},
		{"stopped", "steps 1 5;await m_4;polite w_5", "write m_4;polite note;await w_5;pause;pause;write m_5", true, 1},
		{"failed", "steps 1 5;await m_4;write w_5;exit 1|env STEP;await there2;steps 6 9", "write m_4;polite note;pause;pause;write m_5|write there2;steps 6 9", false, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			set := func(sv *Supervisor) { sv.Checkpoints = "{w,m}_5" }
			chief := join(t, logdir, 0, tc.chief, set)
			await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
			worker := join(t, logdir, 1, tc.other, set)
			if tc.stop {
				chief.await(t, "ready")
				worker.await(t, "ready")
				chief.stop()
			}
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Attempt != tc.attempts || (exit.Cause == Stopped) != tc.stop {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
			}
			if got := marks(t, logdir); !slices.Contains(got, "CHECKPOINT@5") {
				t.Errorf("marks %v", got)
			}
			if tc.attempts > 1 && !strings.Contains(chief.String(), `STEP is "5"`) {
				t.Errorf("the next start was not given it:\n%s", chief)
			}
		})
	}
}

// A worker is stopped together with its program, as by a service manager that ends all
// processes of a machine: the chief learns of both at once, and starts the program again.
func TestNodesStopOfAll(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	n := &nodes{dir: filepath.Join(logdir, nodesDir)}
	chief := join(t, logdir, 0, "say ready;sleep|steps 1 4")
	chief.await(t, "ready")
	tellState(t, n, 1, nodeState{start: n.job().start, Phase: nodeEnded, Cause: Stopped})
	if exit, err := chief.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
		t.Errorf("the chief: %+v, %v; want a second start", exit, err)
	}
}

// The program cannot be started again on the chief's node: it is ended on the other, too.
func TestNodesChiefCannotStart(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	program := filepath.Join(filepath.Dir(logdir), "program")
	childtest.Must(t, os.Symlink(os.Args[0], program))
	chief := join(t, logdir, 0, "await there1;remove ../program;exit 1", func(sv *Supervisor) {
		sv.Command, sv.Grace = []string{program}, patience
		sv.Restarts = Restarts{Max: 2, Backoff: 100 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}
	})
	await(t, "the chief has started", func() bool { return (&nodes{dir: filepath.Join(logdir, nodesDir)}).job().Phase == nodeRunning })
	worker := join(t, logdir, 1, "write there1;sleep", func(sv *Supervisor) { sv.Grace = patience })
	begun := time.Now()
	if _, err := chief.end(t); !is[*ExitError](err) {
		t.Errorf("the chief: %v; want an *ExitError", err)
	}
	if _, err := worker.end(t); !is[*ChiefError](err) {
		t.Errorf("the worker: %v; want a *ChiefError", err)
	}
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("it took %v: the chief has waited for a program that nobody had ended", took)
	}
}

// The hyperparameters of a job with several nodes are those of its chief, at the first
// step of each start, and its end is marked once, by the one that is the chief then.
func TestNodesHParams(t *testing.T) {
	t.Parallel()
	logdir := filepath.Join(t.TempDir(), "log")
	set := func(lr float64) func(*Supervisor) {
		return func(sv *Supervisor) { sv.HParams = map[string]any{"lr": lr} }
	}
	chief := join(t, logdir, 0, "env ATTEMPT;await there1;steps 1 4;write ckpt-2;exit 1|resume 6;write there0;await part1", set(0.1))
	chief.await(t, `ATTEMPT is "1"`)
	worker := join(t, logdir, 1, "write there1;sleep|await there0;steps 1 9;write part1", set(0.2))
	for _, n := range []*node{chief, worker} {
		if exit, err := n.end(t); err != nil || exit.Cause != Completed {
			t.Errorf("node %d: %+v, %v", n.Node, exit, err)
		}
	}
	if got, want := curve(t, logdir, "_hparams_/session_start_info"), []int64{1, 3}; !slices.Equal(got, want) {
		t.Errorf("hyperparameters at steps %v, want %v", got, want)
	}
	if got, want := curve(t, logdir, "_hparams_/session_end_info"), []int64{6}; !slices.Equal(got, want) {
		t.Errorf("end at steps %v, want %v", got, want)
	}
	if got, want := curve(t, logdir, "loss"), count(1, 6); !slices.Equal(got, want) {
		t.Errorf("curve of the steps %v, want %v", got, want)
	}
}

// checkpointsIn returns the names of checkpoints in folders, sorted.
func checkpointsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "ckpt-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		names = append(names, filepath.Base(name))
	}
	slices.Sort(names)
	return names
}

// A disk that is full whenever a node first tells the others something, as when it starts,
// ends or is complete, delays that: all nodes start, fail, start again and end together.
func TestNodesFullDisk(t *testing.T) {
	for full := range 2 { // on this node
		t.Run([]string{"chief", "worker"}[full], func(t *testing.T) {
			t.Parallel()
			logdir := filepath.Join(t.TempDir(), "log")
			var refused atomic.Int32
			onFull := func(sv *Supervisor) {
				tries := 0
				sv.FS = childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: logdir, Fails: func(op, below string) bool {
					if op != "create" || !strings.HasPrefix(below, nodesDir) {
						return false
					}
					if tries++; tries%4 == 0 {
						return false
					}
					refused.Add(1)
					return true
				}}
			}
			settings := [2][]func(*Supervisor){}
			settings[full] = append(settings[full], onFull)
			chief := join(t, logdir, 0, "await there1;steps 1 3;write ckpt-3;await trainerd.manifests/3.json;sleep|steps 4 6;write ckpt-6;await part1", settings[0]...)
			await(t, "the chief has the logdir", func() bool { return lock.Named(logdir).PID != 0 && HasNodes(logdir) })
			worker := join(t, logdir, 1, "write there1;await ckpt-3;exit 3|await ckpt-6;write part1", settings[1]...)
			for _, n := range []*node{chief, worker} {
				if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 2 {
					t.Errorf("node %d: %+v, %v", n.Node, exit, err)
				}
			}
			if got := curve(t, logdir, "loss"); !slices.Equal(got, count(1, 6)) || refused.Load() < 3 {
				t.Errorf("curve of the steps %v, after %d refusals", got, refused.Load())
			}
		})
	}
}

// A worker begins once the chief can know of it: a disk that takes no states holds it up.
func TestNodesBeginWhatIsKnown(t *testing.T) {
	logdir := filepath.Join(t.TempDir(), "log")
	refused := 0
	onFull := func(sv *Supervisor) {
		sv.FS = childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: logdir, Fails: func(op, below string) bool {
			if op != "create" || !strings.HasPrefix(below, nodesDir) || refused == 8 {
				return false
			}
			refused++
			if _, err := os.Stat(filepath.Join(logdir, "there1")); err == nil {
				t.Error("the program runs on a node, and the chief does not know that")
			}
			return true
		}}
	}
	chief := join(t, logdir, 0, "await there1;steps 1 3;write ckpt-3")
	await(t, "the chief has the logdir", func() bool { return lock.Named(logdir).PID != 0 && HasNodes(logdir) })
	worker := join(t, logdir, 1, "write there1;await ckpt-3", onFull)
	for _, n := range []*node{chief, worker} {
		if exit, err := n.end(t); err != nil || exit.Cause != Completed || exit.Attempt != 1 {
			t.Errorf("node %d: %+v, %v", n.Node, exit, err)
		}
	}
	if refused != 8 {
		t.Errorf("%d states were refused, want 8", refused)
	}
}

// The last state of a node is sent once the disk takes it, for a while.
func TestNodesLastState(t *testing.T) {
	dir, tries := t.TempDir(), 0
	n := &nodes{dir: dir, states: map[string]any{}, unsent: map[string]error{}, disk: childtest.PickyDisk{FS: atomicfile.OrOS(nil), Logdir: dir, Fails: func(string, string) bool {
		tries++
		return tries <= 2
	}}}
	if err := n.send(n.jobFile(), jobState{Phase: jobComplete}); err == nil || n.job().Phase != "" {
		t.Fatalf("send = %v; it is %q", err, n.job().Phase)
	}
	if n.sendLast(); n.job().Phase != jobComplete || !n.resend() {
		t.Errorf("it is %q after %d tries", n.job().Phase, tries)
	}
}
