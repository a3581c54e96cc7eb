//go:build unix

package found

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

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
		c := &Checkpoint{Step: tc.step, files: []string{tc.name}, first: Moment{Step: tc.reported}}
		if got := c.NamesStep(); got != tc.want {
			t.Errorf("%s, found at step %d: %v", tc.name, tc.reported, got)
		}
	}
	fast := &Store{known: []Checkpoint{
		{Step: 100, files: []string{"w-100"}, first: Moment{Step: 900}}, {Step: 200, files: []string{"w-200"}, first: Moment{Step: 1000}},
	}}
	if fast.learnNumbers(); fast.counts {
		t.Error("a program that is fast seems to number its checkpoints by saves")
	}
}

// TestNodesNumberSaves has checkpoints that are numbered by saves, and found before it is known
// that another node reports: what they count is learned when its reports are taken, by this
// chief or by the next one.
func TestNodesNumberSaves(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reached := func(saved time.Time) int64 { return int64(saved.Sub(at)/time.Second) + 1 } // a step a second
	dir := t.TempDir()
	s := openStore(t, dir, "w-*.safetensors")
	s.opts.Metrics = func(*Checkpoint) checkpoint.Measurements { return nil }
	for i := range 3 {
		name, saved := filepath.Join(dir, fmt.Sprintf("w-%d.safetensors", i+1)), at.Add(time.Duration(10*i+9)*time.Second)
		childtest.Write(t, name, childtest.Tensors())
		childtest.Must(t, os.Chtimes(name, saved, saved))
	}
	s.Refresh(true)
	if s.NoteReported(reached); !s.counts {
		t.Error("the numbers are taken for steps")
	}
	for i, c := range s.known {
		if want := int64(10 * (i + 1)); c.At() != want || c.record.Reported != want {
			t.Errorf("%s is of step %d, want %d; its record: %+v", c.Path, c.At(), want, c.record)
		}
	}
}

// TestNodesNumberSavesOnce is TestNodesNumberSaves for a first checkpoint that is only known
// to have a name without a step.
func TestNodesNumberSavesOnce(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dir := t.TempDir()
	name := filepath.Join(dir, "w-1.safetensors")
	childtest.Write(t, name, childtest.Tensors())
	childtest.Must(t, os.Chtimes(name, at, at))
	s := openStore(t, dir, "w-*.safetensors")
	s.Refresh(true)
	s.NoteReported(func(time.Time) int64 { return 20 })
	if c := s.known[0]; c.NamesStep() || s.counts || c.record.Reported != 20 {
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

// TestReachedWithoutStep has a checkpoint whose name has no step: what had been reported
// when it was found is how far the program had come.
func TestReachedWithoutStep(t *testing.T) {
	c := &Checkpoint{Step: NoStep, files: []string{"last"}, first: Moment{Step: 30}}
	if at, reached := c.At(), c.Reached(); at != NoStep || reached != 30 {
		t.Errorf("it is of step %d, and had reached %d", at, reached)
	}
}

// TestNumbersOnBadDisk has a disk that does not take what is learned of numbers: that is
// said, and what they count is known all the same.
func TestNumbersOnBadDisk(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d.safetensors", i+1)), childtest.Tensors())
	}
	s := openStore(t, dir, "w-*.safetensors")
	s.opts.Metrics = func(*Checkpoint) checkpoint.Measurements { return nil }
	s.Refresh(true)
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, _ string) bool { return op == "create" }}
	step := int64(0)
	s.NoteReported(func(time.Time) int64 { step += 100; return step })
	if errs := s.Unrecorded(); !s.counts || len(errs) != 6 || s.Unrecorded() != nil {
		t.Errorf("the numbers count saves: %v; said is %v", s.counts, errs)
	}
}

// TestMeasureNoStep has values of a step that is not known: they are of no checkpoint.
func TestMeasureNoStep(t *testing.T) {
	s := openStore(t, childtest.Logdir(t, "last"), "last")
	s.Refresh(true)
	childtest.Must(t, s.Measure(NoStep, checkpoint.Measurements{"loss": {Value: 1}}))
	if r := s.known[0].record; len(r.Metrics) != 0 {
		t.Errorf("its record has %v", r.Metrics)
	}
}
