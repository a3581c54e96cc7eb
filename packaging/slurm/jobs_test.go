//go:build linux

package slurm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/tfevents"
)

const (
	oneNode  = "../../examples/slurm/train.sbatch"
	allNodes = "../../examples/slurm/nodes.sbatch"
)

// script returns the name of a batch script for sbatch, which runs elsewhere.
func script(t *testing.T, name string) string {
	t.Helper()
	abs, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// training returns the arguments of trainerd for a program that makes five steps
// a second, and saves at each twentieth and on SIGTERM.
func training(t *testing.T, steps string) []string {
	return []string{"--set", "child.checkpoints=ckpt-*.json", "--set", "train.steps=" + steps, "--", "env", "PAUSE=0.2", "python3",
		script(t, "../../examples/child/train.py")}
}

// part is a program of several nodes: the first one trains, the others are there until it
// is complete, or all are to stop.
const part = `if [ "$TRAINERD_NODE" = 0 ]; then exec python3 "$0"; fi
trap 'exit 0' TERM
until [ -e "$TRAINERD_LOGDIR/ckpt-$TRAINERD_STEPS.json" ]; do sleep 0.2; done`

// trainingOnAll is training for a program of several nodes.
func trainingOnAll(t *testing.T, steps string) []string {
	return []string{"--set", "child.checkpoints=ckpt-*.json", "--set", "train.steps=" + steps, "--", "env", "PAUSE=0.2", "sh", "-c", part,
		script(t, "../../examples/child/train.py")}
}

// judgeCurve wants one point for each step.
func (c *cluster) judgeCurve(name string, steps int64) {
	c.t.Helper()
	fsys := os.DirFS(filepath.Join(c.work, "logs", name))
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil || len(runs) == 0 {
		c.t.Fatalf("%d runs, %v", len(runs), err)
	}
	want := int64(1)
	for p := range tfevents.ReadRun(fsys, runs[0], nil).Lookup("loss").Points() {
		if p.Step != want {
			c.t.Fatalf("a point at step %d, want %d", p.Step, want)
		}
		want++
	}
	if want != steps+1 {
		c.t.Errorf("the last point is at step %d, want %d", want-1, steps)
	}
}

var (
	stopped  = regexp.MustCompile(`stopped at step (\d+), and saved`)
	restored = regexp.MustCompile(`restored; training continues" step=(\d+)`)
)

// judgeStarts wants each start to begin where the one before was stopped, and returns how
// many there were after the first.
func (c *cluster) judgeStarts(name string) int {
	c.t.Helper()
	out := c.output(name)
	ends, begins := stopped.FindAllStringSubmatch(out, -1), restored.FindAllStringSubmatch(out, -1)
	if len(ends) != len(begins) {
		c.t.Fatalf("%d starts were stopped, %d resumed:\n%s", len(ends), len(begins), out)
	}
	for i, end := range ends {
		if end[1] != begins[i][1] {
			c.t.Errorf("a start was stopped at step %s, the next one resumed at %s", end[1], begins[i][1])
		}
	}
	return len(begins)
}

// A training outlives its walltime, as often as need be, under one job ID, also where Slurm
// does not say before that it is near.
func TestWalltime(t *testing.T) {
	c := newCluster(t)
	early := c.submit(append([]string{"--job-name=early", "--time=1", "--signal=B:TERM@50", script(t, oneNode)}, training(t, "250")...)...)
	late := c.submit(append([]string{"--job-name=late", "--time=1", "--signal=B:CONT@1", script(t, oneNode)}, training(t, "500")...)...)
	for name, job := range map[string]struct {
		id    string
		steps int64
	}{"early": {early, 250}, "late": {late, 500}} {
		c.awaitState(job.id, "COMPLETED")
		if n := c.judgeStarts(name); n == 0 || n != c.restarts(job.id) {
			t.Errorf("%s: %d starts resumed, Slurm has requeued the job %d times", name, n, c.restarts(job.id))
		}
		c.judgeCurve(name, job.steps)
	}
}

// A job that is more urgent takes the nodes; the training saves before, and continues after it.
func TestPreemption(t *testing.T) {
	c := newCluster(t)
	id := c.submit(append([]string{"--time=10", script(t, oneNode)}, training(t, "200")...)...)
	c.eventually("a checkpoint", func() bool { return strings.Contains(c.output("train"), "saved step=20") })
	urgent := c.submit("--partition=urgent", "--nodes=2", "--exclusive", "--time=1", "--job-name=urgent", "--output=/dev/null", "--wrap=sleep 2")
	c.awaitState(urgent, "COMPLETED")
	c.awaitState(id, "COMPLETED")
	if n := c.judgeStarts("train"); n != 1 {
		t.Errorf("%d starts resumed, want 1:\n%s", n, c.output("train"))
	}
	c.judgeCurve("train", 200)
}

// A node dies, and with it the training: another one continues from the newest checkpoint.
func TestLostNode(t *testing.T) {
	c := newCluster(t)
	id := c.submit(append([]string{"--time=10", script(t, oneNode)}, training(t, "150")...)...)
	c.eventually("two checkpoints", func() bool { return strings.Contains(c.output("train"), "saved step=40") })
	c.killNode(c.property(id, "BatchHost"))
	c.awaitState(id, "COMPLETED")
	begins := restored.FindAllStringSubmatch(c.output("train"), -1)
	if len(begins) != 1 || begins[0][1] == "20" {
		t.Errorf("%d starts resumed, want 1, at step 40 or later: %v", len(begins), begins)
	}
	c.judgeCurve("train", 150)
}

// What is cancelled is not started again, and what it saves in time is kept.
func TestCancelled(t *testing.T) {
	c := newCluster(t)
	one, all := append([]string{script(t, oneNode)}, training(t, "1000")...), append([]string{script(t, allNodes)}, trainingOnAll(t, "1000")...)
	for name, args := range map[string][]string{"one": one, "all": all} {
		id := c.submit(append([]string{"--time=10", "--job-name=" + name}, args...)...)
		c.eventually("a step", func() bool { return strings.Contains(c.output(name), "msg=training step=") })
		c.try("scancel", id)
		c.awaitState(id, "CANCELLED")
		if out := c.output(name); name == "one" && !stopped.MatchString(out) {
			t.Errorf("it was cancelled without a last save:\n%s", out)
		}
		if n := c.restarts(id); n != 0 {
			t.Errorf("Slurm has requeued it %d times", n)
		}
	}
}

// Another start would not help a program that says so.
func TestUsageError(t *testing.T) {
	c := newCluster(t)
	id := c.submit("--time=10", script(t, oneNode), "--", "sh", "-c", "exit 78")
	c.awaitState(id, "FAILED")
	if code := c.property(id, "ExitCode"); code != "78:0" {
		t.Errorf("Slurm has the exit code %s, want 78:0", code)
	}
}

// A training on two nodes outlives its walltime.
func TestNodes(t *testing.T) {
	c := newCluster(t)
	id := c.submit(append([]string{"--time=1", "--signal=B:TERM@50", script(t, allNodes)}, trainingOnAll(t, "200")...)...)
	c.awaitState(id, "COMPLETED")
	if c.restarts(id) == 0 {
		t.Errorf("it was not requeued:\n%s", c.output("train"))
	}
	c.judgeCurve("train", 200)
}
