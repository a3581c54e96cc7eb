//go:build unix

package child

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// TestCountsSaves has a program whose checkpoints are numbered by its saves, as those of
// tf.train.CheckpointManager are, while it reports steps: what it has done when it saved, and
// how well, is that of the steps, also for a later run.
func TestCountsSaves(t *testing.T) {
	sv, out := supervise(t, "steps 1 40;write w-1;await trainerd.manifests/1.json;steps 41 80;write w-2;await trainerd.manifests/2.json;"+
		"steps 81 120;write w-3;await trainerd.manifests/3.json;say ready;sleep")
	sv.LookEvery = 20 * time.Millisecond
	sv.Checkpoints = "w-*"
	sv.Retention = []retention.Policy{retention.Last(3)}
	ctx, stop := context.WithCancel(t.Context())
	sv.Stdout = &stopper{screen: out, at: "ready", stop: stop}
	if exit, err := sv.Run(ctx); exit.Cause != Stopped || err != nil {
		t.Fatalf("got %v, %v, though it has saved all", exit.Cause, err)
	}
	for _, name := range []string{"w-1", "w-3"} { // one alone shows it, too
		if err := os.Rename(filepath.Join(sv.Logdir, name), filepath.Join(sv.Logdir, "not-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	known, err := Look(sv.Logdir, sv.Checkpoints)
	if err != nil || len(known) != 1 {
		t.Fatalf("got %v, %v", known, err)
	}
	for _, c := range known {
		if got := c.record.Metrics["loss"]; c.Reached() != 40*c.Step || float64(got) != 1/float64(40*c.Step) {
			t.Errorf("save %d is of step %d, with loss %v", c.Step, c.Reached(), got)
		}
	}
}

// TestNamesStep has what a look found when the program had come to a step.
func TestNamesStep(t *testing.T) {
	for _, tc := range []struct {
		name     string
		step     int64
		reported int64
		want     bool
	}{
		{"w-100", 100, 100, true}, {"w-100", 100, 150, true}, {"w-3", 3, 300, false}, {"step_3", 3, 300, true},
		{"w-0", 0, 1, true}, {"w-1", 1, 3, true}, {"w-100", 100, 0, true}, {"epoch_3", 3, 3, false}, {"last", NoStep, 3, false},
	} {
		c := &Checkpoint{Step: tc.step, files: []string{tc.name}, first: moment{step: tc.reported}}
		if got := c.namesStep(); got != tc.want {
			t.Errorf("%s, found at step %d: %v", tc.name, tc.reported, got)
		}
	}
	fast := &checkpointStore{known: []Checkpoint{
		{Step: 100, files: []string{"w-100"}, first: moment{step: 900}}, {Step: 200, files: []string{"w-200"}, first: moment{step: 1000}},
	}}
	if fast.learnNumbers(); fast.counts {
		t.Error("a program that is fast seems to number its checkpoints by saves")
	}
}

// TestTrustsNumberOfSave has checkpoints whose numbers count saves, or epochs: a finite loss has
// come after them once it is of a later step than was reported when they were found.
func TestTrustsNumberOfSave(t *testing.T) {
	for _, tc := range []struct {
		name     string
		step     int64
		reported int64
		given    string
		want     bool
	}{
		{"w-3", 3, 29, "", true}, {"w-3", 3, 30, "", false}, {"w-3", 3, 30, "w-3", true}, {"w-30", 30, 30, "", true},
		{"epoch_3", 3, 30, "", false}, {"epoch_3", 3, 29, "", true}, {"epoch_30", 30, 30, "", true}, {"w-31", 31, 30, "", false},
	} {
		b := &rewinds{good: 30, given: tc.given}
		if got := b.trusts(&Checkpoint{Path: tc.name, Saved: b.goodAt.Add(1), Step: tc.step, files: []string{tc.name}, first: moment{step: tc.reported}}); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// TestNodesNumberSaves has checkpoints that are numbered by saves, and found before it is known
// that another node reports: what they count is learned when its reports are taken, by this
// chief or by the next one.
func TestNodesNumberSaves(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var reports []*Report
	for step := range int64(30) {
		reports = append(reports, &Report{Step: step + 1, Time: at.Add(time.Duration(step) * time.Second)})
	}
	dir := t.TempDir()
	s := openShelf(t, dir, "w-*.safetensors")
	s.metrics = func(*Checkpoint) checkpoint.Measurements { return nil }
	for i := range 3 {
		name, saved := filepath.Join(dir, fmt.Sprintf("w-%d.safetensors", i+1)), at.Add(time.Duration(10*i+9)*time.Second)
		writeFile(t, name, tensorsFile())
		must(t, os.Chtimes(name, saved, saved))
	}
	s.refresh(true)
	if s.noteReported(reports); !s.counts {
		t.Error("the numbers are taken for steps")
	}
	for i, c := range s.known {
		if want := int64(10 * (i + 1)); c.at() != want || c.record.Reported != want {
			t.Errorf("%s is of step %d, want %d; its record: %+v", c.Path, c.at(), want, c.record)
		}
	}
}

// TestNodesNumberSavesOnce is TestNodesNumberSaves for a first checkpoint that is only known
// to have a name without a step.
func TestNodesNumberSavesOnce(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	name := filepath.Join(dir, "w-1.safetensors")
	writeFile(t, name, tensorsFile())
	must(t, os.Chtimes(name, at, at))
	s := openShelf(t, dir, "w-*.safetensors")
	s.refresh(true)
	s.noteReported([]*Report{{Step: 20, Time: at}, {Step: 21, Time: at.Add(time.Second)}})
	if c := s.known[0]; c.namesStep() || s.counts || c.record.Reported != 20 {
		t.Errorf("after the reports: %+v, record %+v", c, c.record)
	}
}

func TestRunOf(t *testing.T) {
	for name, want := range map[string]string{
		"outputs/2026-11-26/20-09-10/step_5.pt":           "2026-11-26/20-09-10/",
		"wandb/run-20261126_200910-ab12cd/files/5.pt":     "run-20261126_200910-ab12cd/",
		"runs/Nov26_20-09-10_vm/5.pt":                     "Nov26_20-09-10_vm/",
		"exp/resnet50_20261126-200910/checkpoint_5.pt":    "resnet50_20261126-200910/",
		"lightning_logs/version_3/checkpoints/epoch=5.pt": "version_3/",
		"exp/resnet50/checkpoint_20261126_200910.pt":      "",
	} {
		if got := runOf(name); got != want {
			t.Errorf("runOf(%q) = %q, want %q", name, got, want)
		}
	}
}
