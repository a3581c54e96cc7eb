//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestCountedInCopiedLogdir has checkpoints that are numbered by saves, in a logdir that is copied
// without the times of its files: what they count, and how far the program had come, stays known.
func TestCountedInCopiedLogdir(t *testing.T) {
	dir := t.TempDir()
	s, step := openStore(t, dir, "w-*"), int64(0)
	s.opts.Now = func() Moment { return Moment{Step: step} }
	s.opts.Metrics = func(*Checkpoint) checkpoint.Measurements { return nil }
	names := []string{"w-3", "w-4", "w-5"} // the last once it is known what they count
	for i, name := range names {
		step = int64(300 + 100*i)
		childtest.Write(t, filepath.Join(dir, name), name)
		s.Refresh(true)
	}
	for _, again := range []bool{false, true} {
		if again {
			for _, name := range names {
				childtest.Must(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Unix(1_000_000, 0)))
			}
			s = openStore(t, dir, "w-*")
			s.ReadRecords()
			s.Refresh(true)
		}
		for i, c := range s.known {
			if want := int64(300 + 100*i); c.At() != want || !c.CountsOtherUnit() {
				t.Errorf("copied %v: %s is of step %d, want %d", again, c.Path, c.At(), want)
			}
		}
		records, bad := manifest.Records(dir)
		for _, r := range records {
			if !r.Counted || r.Reported != 100*r.Step {
				t.Errorf("copied %v: recorded is %+v", again, r)
			}
		}
		if len(s.known) != 3 || len(records) != 3 || bad != nil {
			t.Errorf("copied %v: known are %v, recorded %v, %v", again, s.known, records, bad)
		}
	}
}

// TestStepIsNotReported has a checkpoint that is named by its step: its record needs no other, also
// in a logdir that is copied.
func TestStepIsNotReported(t *testing.T) {
	dir := childtest.Logdir(t, "w-100")
	s := openStore(t, dir, "w-*")
	s.opts.Now = func() Moment { return Moment{Step: 100} }
	for range 2 {
		s.Refresh(true)
		if r := s.known[0].record; r.Reported != 0 || r.Counted {
			t.Errorf("recorded is %+v", r)
		}
		childtest.Must(t, os.Chtimes(filepath.Join(dir, "w-100"), time.Time{}, time.Unix(2_000_000, 0)))
	}
}

// TestCountedWithoutMetrics has a look at checkpoints that are numbered by saves, for which nobody
// has values: what they count is learned.
func TestCountedWithoutMetrics(t *testing.T) {
	dir, step := t.TempDir(), int64(0)
	s := openStore(t, dir, "w-*")
	s.opts.Now = func() Moment { return Moment{Step: step} }
	for i, name := range []string{"w-3", "w-4"} {
		step = int64(300 + 100*i)
		childtest.Write(t, filepath.Join(dir, name), name)
		if added, _ := s.Refresh(true); len(added) != 1 || added[0].CountsOtherUnit() != (i > 0) {
			t.Errorf("added %+v", added)
		}
	}
	if c := s.known[0]; !c.CountsOtherUnit() || c.At() != 300 {
		t.Errorf("%s is of step %d", c.Path, c.At())
	}
}

// TestMeasuredOfTheStepBefore has values of the model of a step, reported of the step after it, at
// which a checkpoint was saved: they are the checkpoint's where it has none of their names. One
// that is numbered by epochs has none of them.
func TestMeasuredOfTheStepBefore(t *testing.T) {
	dir := childtest.Logdir(t, "step_10")
	s := openStore(t, dir, "*")
	s.opts.Metrics = func(*Checkpoint) checkpoint.Measurements {
		return checkpoint.Measurements{"loss": {Value: 1, Step: 10}}
	}
	s.Refresh(true)
	childtest.Must(t, s.Measure(8, checkpoint.Measurements{"loss": {Value: 8}, "acc": {Value: 8}}))
	childtest.Must(t, s.Measure(9, checkpoint.Measurements{"loss": {Value: 2}, "acc": {Value: 3}}))
	whole := s.disk
	s.disk = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(op, _ string) bool { return op == "create" }}
	childtest.Must(t, s.Measure(9, checkpoint.Measurements{"acc": {Value: 4}})) // which writes nothing
	if s.Measure(9, checkpoint.Measurements{"f1": {Value: 4}}) == nil {
		t.Error("that the disk does not take a value is not said")
	}
	records, bad := manifest.Records(dir)
	if m := records[0].Metrics; bad != nil || len(m) != 2 || m["loss"] != 1 || m["acc"] != 3 {
		t.Errorf("recorded is %v, %v", m, bad)
	}

	epochs := openStore(t, childtest.Logdir(t, "epoch_10"), "*")
	epochs.opts.Now = func() Moment { return Moment{Step: 400} }
	epochs.Refresh(true)
	childtest.Must(t, epochs.Measure(9, checkpoint.Measurements{"acc": {Value: 3}}))
	if m := epochs.known[0].record.Metrics; len(m) > 0 {
		t.Errorf("of an epoch: %v", m)
	}
}

// TestFoldersOfBefore has two folders that lack what a newer one has: where they are from before
// this start one crash may have cut both, else the program does without it.
func TestFoldersOfBefore(t *testing.T) {
	for attempt, want := range map[int][]int64{0: nil, 1: {10, 20}} {
		dir := childtest.Logdir(t, "c-30/w", "c-30/m")
		s := openStore(t, dir, "c-*")
		s.opts.Now = func() Moment { return Moment{Attempt: attempt} }
		s.Refresh(true)
		for _, name := range []string{"c-10/w", "c-20/w"} {
			childtest.Write(t, filepath.Join(dir, name), name)
		}
		added, bad := s.Refresh(true)
		if got := steps(added); !slices.Equal(slices.Sorted(slices.Values(got)), want) || len(bad) == 0 != (attempt > 0) {
			t.Errorf("start %d: added %v, bad %v", attempt, got, bad)
		}
	}
}

// TestNamesOfWhatNeverComesBack has a damaged checkpoint that a file names, and whose copy the disk
// does not give back yet. Once the copy is damaged, too, the file names it no more; once it is
// back, the file is the program's, whatever becomes of the checkpoint.
func TestNamesOfWhatNeverComesBack(t *testing.T) {
	for _, back := range []bool{false, true} {
		dir := t.TempDir()
		name, latest := filepath.Join(dir, "last.safetensors"), filepath.Join(dir, "latest")
		childtest.Write(t, name, childtest.Tensors())
		childtest.Write(t, latest, "last.safetensors")
		s := openStore(t, dir, "last.safetensors")
		s.Refresh(true)
		childtest.Write(t, name, "x")
		s.Refresh(true)
		c := s.NewestDamaged()[0]
		if m, err := s.Quarantine(t.Context(), c, time.Now()); err != nil || m.Misnamed != nil {
			t.Fatal(err, m.Misnamed)
		}
		if len(s.Gone()) != 1 {
			t.Errorf("once it is aside, gone are %v", s.Gone())
		}
		childtest.Must(t, s.Correct())
		if got := childtest.Read(t, latest); got != "last.safetensors" {
			t.Errorf("while it has a copy, latest has %q", got)
		}
		if !back {
			for _, file := range childtest.Below(t, filepath.Join(dir, CopiesDir)) {
				childtest.Write(t, filepath.Join(dir, CopiesDir, file), "y")
			}
		}
		if restored, _, _ := s.BringBack(t.Context(), c); restored != back {
			t.Errorf("it is back: %v, want %v", restored, back)
		}
		childtest.Must(t, s.Correct())
		if back {
			childtest.Must(t, os.Remove(name))
			childtest.Must(t, s.Correct())
		}
		if text, err := os.ReadFile(latest); (err == nil) != back || back && strings.TrimSpace(string(text)) != "last.safetensors" {
			t.Errorf("back %v: latest has %q, %v", back, text, err)
		}
	}
}

// TestStateIsForgotten has TensorFlow's file that names the current checkpoint name a damaged one,
// and no other: it is gone, and nothing of it is moved aside, for there is nothing else in it.
func TestStateIsForgotten(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "m-20.index"), "x")
	childtest.Write(t, filepath.Join(dir, "checkpoint"), "model_checkpoint_path: \"m-20\"\nall_model_checkpoint_paths: \"m-20\"\n")
	s := openStore(t, dir, "m-*")
	s.Refresh(true)
	childtest.Must(t, clearDamaged(t.Context(), s))
	for _, name := range childtest.Below(t, dir) {
		if filepath.Base(name) == "checkpoint" {
			t.Errorf("left is %s", name)
		}
	}
}

// TestLearn has a logdir that was deleted and made again: what is known of the program's
// checkpoints, though none of them is there any more, holds for the next one.
func TestLearn(t *testing.T) {
	whole := strings.Repeat("weights", 100)
	for name, tc := range map[string]struct {
		pattern        string
		before         []string          // files of one checkpoint, with # for its number
		after          map[string]string // of the next one, with their content
		counts, learns bool              // it counts without what is known, and with it
	}{
		"which files a folder has":      {"w-*", []string{"w-#/a", "w-#/b"}, map[string]string{"w-9/b": whole}, true, false},
		"how long a file is":            {"w-*", []string{"w-#"}, map[string]string{"w-9": whole[:100]}, true, false},
		"that it makes no second file":  {"{w,optim}-*", []string{"w-#"}, map[string]string{"w-9": whole}, false, true},
		"nothing else than was learned": {"w-*", []string{"w-#/a"}, map[string]string{"w-9/a": whole}, true, true},
	} {
		dir, again := t.TempDir(), t.TempDir()
		old := openStore(t, dir, tc.pattern)
		for step := 3; step <= 6; step++ {
			for _, f := range tc.before {
				childtest.Write(t, filepath.Join(dir, strings.ReplaceAll(f, "#", strconv.Itoa(step))), whole)
			}
			old.Refresh(true)
		}
		for f, content := range tc.after {
			childtest.Write(t, filepath.Join(again, f), content)
		}
		for learns, want := range map[bool]bool{false: tc.counts, true: tc.learns} {
			s := openStore(t, again, tc.pattern)
			if learns {
				s.Learn(old)
			}
			s.readOnly = true
			if added, _ := s.Refresh(true); (len(added) == 1) != want {
				t.Errorf("%s: it counts: %v; learned %v", name, len(added) == 1, learns)
			}
		}
	}
}

// TestLearnCounts has the same of what the numbers in the names count.
func TestLearnCounts(t *testing.T) {
	step := int64(0)
	count := func(s *Store) *Store {
		s.opts.Now = func() Moment { return Moment{Step: step} }
		return s
	}
	dir, again := t.TempDir(), t.TempDir()
	old, s := count(openStore(t, dir, "w-*")), count(openStore(t, again, "w-*"))
	for _, name := range []string{"w-3", "w-4"} {
		step += 300
		childtest.Write(t, filepath.Join(dir, name), name)
		old.Refresh(true)
	}
	s.Learn(old)
	step += 300
	childtest.Write(t, filepath.Join(again, "w-5"), "weights")
	if added, _ := s.Refresh(true); len(added) != 1 || added[0].At() != 900 {
		t.Errorf("it finds %v, want one of step 900", added)
	}
}
