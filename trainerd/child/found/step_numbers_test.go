//go:build unix

package found

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestNamesStep has what a scan found when the program had come to a step.
func TestNamesStep(t *testing.T) {
	for _, tc := range []struct {
		name     string
		step     int64
		reported int64
		want     bool
	}{
		{"w-100", 100, 100, true}, {"w-100", 100, 150, true}, {"w-3", 3, 300, false}, {"w-3", 3, 8, false}, {"w-3", 3, 7, true}, {"step_3", 3, 300, true},
		{"w-0", 0, 1, true}, {"w-1", 1, 3, true}, {"w-100", 100, 0, true}, {"epoch_3", 3, 3, false}, {"last", NoStep, 3, false},
	} {
		c := &Checkpoint{Step: tc.step, files: []string{tc.name}, first: Moment{Step: tc.reported}}
		if got := c.NamesStep(); got != tc.want {
			t.Errorf("%s, found at step %d: %v", tc.name, tc.reported, got)
		}
	}
}

// TestShowsStep has what a scan found when the program had come to a step.
func TestShowsStep(t *testing.T) {
	for _, tc := range []struct {
		name           string
		step, reported int64
		want           bool
	}{
		{"w-10", 10, 10, true}, {"w-10", 10, 11, true}, {"w-10", 10, 12, false}, {"w-10", 10, 1, true}, {"w-10", 10, 0, false},
		{"w-2", 2, 3, true}, {"w-1", 1, 1, false}, {"w-1", 1, 2, false}, {"epoch_10", 10, 10, false}, {"last", NoStep, 3, false},
	} {
		c := &Checkpoint{Step: tc.step, files: []string{tc.name}, first: Moment{Step: tc.reported}}
		if got := c.ShowsStep(); got != tc.want {
			t.Errorf("%s, found at step %d: %v", tc.name, tc.reported, got)
		}
	}
}

// TestLearnsNumbers has checkpoints, one after the other, with what had been reported when each was
// found: their numbers count something else than steps where the reports rise much more.
func TestLearnsNumbers(t *testing.T) {
	at := func(name string, reported int64) Checkpoint {
		return Checkpoint{Step: stepOfName(name), files: []string{name}, first: Moment{Step: reported}}
	}
	counted := at("w-3", 300)
	counted.record = &manifest.Record{Step: 3, Counted: true}
	for _, tc := range []struct {
		why   string
		known []Checkpoint
		want  bool
	}{
		{"saves", []Checkpoint{at("w-3", 300), at("w-4", 400)}, true},
		{"just as much more", []Checkpoint{at("w-10", 40), at("w-20", 80)}, true},
		{"a report less", []Checkpoint{at("w-10", 39), at("w-20", 79)}, false},
		{"a fast program", []Checkpoint{at("w-100", 900), at("w-200", 1000)}, false},
		{"a first without a step", []Checkpoint{at("last", 10), at("w-2", 300)}, false},
		{"a first that names it", []Checkpoint{at("step_3", 300), at("w-4", 400)}, false},
		{"a second that names it", []Checkpoint{at("w-3", 300), at("step_4", 400)}, false},
		{"without reports", []Checkpoint{at("w-3", 0), at("w-4", 400)}, false},
		{"one alone", []Checkpoint{at("w-3", 300)}, false},
		{"one alone, as was recorded", []Checkpoint{counted}, true},
	} {
		s := &Store{known: tc.known}
		if s.learnNumbers(); s.countsOther != tc.want {
			t.Errorf("%s: they count something else: %v", tc.why, s.countsOther)
		}
	}
}

// TestReportedOnce has what another node reports noted of checkpoints: of those that nothing
// is known of yet, and not in the records of those whose names say their steps.
func TestReportedOnce(t *testing.T) {
	dir := childtest.Logdir(t, "step_100", "w-3")
	s := openStore(t, dir, "*")
	s.Refresh(true)
	s.known[0].first.Step, s.known[0].record = 1, nil
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, _ string) bool { return op == "create" }}
	s.RecordReported(func(time.Time) int64 { return 7 })
	if a, b := s.known[0].Reported(), s.known[1].Reported(); a != 1 || b != 7 || s.Unrecorded() != nil {
		t.Errorf("reported when they were found: %d and %d; not recorded is %v", a, b, s.Unrecorded())
	}
	s.known[0].first.Step = 0
	s.RecordReported(func(time.Time) int64 { return 300 })
	if s.known[0].Reported() != 300 {
		t.Errorf("one without a record: %d", s.known[0].Reported())
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
	if s.RecordReported(reached); !s.countsOther {
		t.Error("the numbers are taken for steps")
	}
	for i, c := range s.known {
		if want := int64(10 * (i + 1)); c.At() != want || c.record.Reported != want {
			t.Errorf("%s is of step %d, want %d; its record: %+v", c.Path, c.At(), want, c.record)
		}
	}
	var asked []int64
	s.opts.Metrics = func(c *Checkpoint) checkpoint.Measurements { asked = append(asked, c.At()); return nil }
	childtest.Write(t, filepath.Join(dir, "w-4.safetensors"), childtest.Tensors())
	if s.Refresh(true); slices.Contains(asked, 4) {
		t.Errorf("the metrics of the next one are asked for at the steps %v", asked)
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
	s.RecordReported(func(time.Time) int64 { return 20 })
	if c := s.known[0]; c.NamesStep() || s.countsOther || c.record.Reported != 20 {
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
	for _, step := range []int64{0, 1} {
		c.first.Step = step
		if want := cmp.Or(step, NoStep); c.Reached() != want {
			t.Errorf("after a report of step %d it had reached %d", step, c.Reached())
		}
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
	s.RecordReported(func(time.Time) int64 { step += 100; return step })
	if errs := s.Unrecorded(); !s.countsOther || len(errs) != 6 || s.Unrecorded() != nil {
		t.Errorf("the numbers count saves: %v; said is %v", s.countsOther, errs)
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

// TestWhatIsKnownIsNotNotedAgain has a checkpoint with a known step of the reports, and one that no report is
// about: neither is recorded again.
func TestWhatIsKnownIsNotNotedAgain(t *testing.T) {
	for reported, reached := range map[int64]int64{1: 5, 0: 0} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "last.safetensors"), childtest.Tensors())
		s := openStore(t, dir, "last.safetensors")
		s.opts.Now = func() Moment { return Moment{Step: reported} }
		s.Refresh(true)
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, _ string) bool { return op == "create" }}
		s.RecordReported(func(time.Time) int64 { return reached })
		c, seen := s.known[0], s.seen[s.known[0].key()]
		if c.Reported() != reported || seen.Reported() != reported || len(s.Unrecorded()) > 0 {
			t.Errorf("reported were %d, and %d later; %d are known, and %d seen", reported, reached, c.Reported(), seen.Reported())
		}
	}
}
