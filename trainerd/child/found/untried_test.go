//go:build unix

package found

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestUntriedIsRecorded has checkpoints in a form that does not show whether they are whole, and in one that does:
// the next run must know which of them the program has not gone on from, until it has.
func TestUntriedIsRecorded(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		program       bool
		want          bool
	}{
		{"ckpt-10", "weights", true, true},
		{"ckpt-10", "weights", false, false},
		{"ckpt-10.safetensors", childtest.Tensors(), true, false},
	} {
		open := func() (*Store, func() bool) {
			dir := t.TempDir()
			childtest.Write(t, filepath.Join(dir, tc.name), tc.content)
			s := openStore(t, dir, "ckpt-*")
			if tc.program {
				s.opts.Now = func() Moment { return Moment{Step: 10, Attempt: 1, At: time.Now()} }
			}
			return s, func() bool {
				records, _ := manifest.Records(dir)
				return len(records) == 1 && records[0].Untried
			}
		}
		s, untried := open()
		if s.Refresh(true); untried() != tc.want {
			t.Errorf("%+v: recorded as untried: %v", tc, untried())
		}
		if s.MarkTried(11, 1); untried() || len(s.Unrecorded()) > 0 {
			t.Errorf("%+v: recorded as untried after the next step", tc)
		}
		s, untried = open()
		all := s.Candidates(true)
		s.RecordContinued(&all[0], 10)
		if s.Accept(s.Verify(t.Context(), all)); untried() || s.known[0].untried {
			t.Errorf("%+v: recorded as untried, and the program has continued from it", tc)
		}
	}
}

// TestReachedBeforeInTurns has one of several names in turn that no report tells the step of: the program had come
// at least as far as with what it had written before.
func TestReachedBeforeInTurns(t *testing.T) {
	s := openStore(t, t.TempDir(), "slot_*")
	c := reusedAt("slot_1.pt", NoStep, 0, 0, 3)
	s.known = []Checkpoint{reusedAt("slot_2.pt", NoStep, 20, 1, 2), reusedAt("slot_3.pt", NoStep, 10, 1, 1), reusedAt("slot_0.pt", NoStep, 90, 2, 9)}
	s.recorded = Moment{Step: 5, At: c.Saved.Add(-time.Hour)}
	if got := s.ReachedBefore(&c); got != NoStep {
		t.Errorf("one with a number of its own: %d", got)
	}
	if c.reused = true; s.ReachedBefore(&c) != 20 {
		t.Errorf("it had come to step %d before", s.ReachedBefore(&c))
	}
	if s.known = nil; s.ReachedBefore(&c) != 5 {
		t.Errorf("by its records it had come to step %d before", s.ReachedBefore(&c))
	}
	if s.recorded.At = c.Saved; s.ReachedBefore(&c) != NoStep {
		t.Errorf("by records that came later it had come to step %d before", s.ReachedBefore(&c))
	}
	if s.ReachedBefore(nil) != NoStep {
		t.Error("there is a step before none")
	}
}

// TestUntriedIsReadBack has two checkpoints of an earlier run, which did not continue from the second: the next run
// knows that.
func TestUntriedIsReadBack(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-10")
	at := Moment{Step: 10, Attempt: 1, At: time.Now()}
	now := func() Moment { return at }
	s := openStore(t, dir, "ckpt-*")
	s.opts.Now = now
	s.Refresh(true)
	s.MarkTried(11, 1)
	childtest.Write(t, filepath.Join(dir, "ckpt-20"), "weights")
	at.Step = 20
	s.Refresh(true)
	s = openStore(t, dir, "ckpt-*")
	s.opts.Now = now
	s.ReadRecords()
	if s.Refresh(true); len(s.known) != 2 || s.known[0].untried || !s.known[1].untried {
		t.Errorf("known are %+v", s.known)
	}
}

// TestTrustOnBadDisk has a disk that does not take that the program has continued: that is said.
func TestTrustOnBadDisk(t *testing.T) {
	dir := childtest.Logdir(t, "ckpt-10")
	s := openStore(t, dir, "ckpt-*")
	s.opts.Now = func() Moment { return Moment{Step: 10, Attempt: 1, At: time.Now()} }
	s.Refresh(true)
	s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, _ string) bool { return op == "create" }}
	if s.MarkTried(11, 1); s.known[0].untried || len(s.Unrecorded()) != 1 {
		t.Errorf("untried: %v; said is %v", s.known[0].untried, s.Unrecorded())
	}
}
