//go:build unix

package found

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestIsOverwritten has two saves under one name: the second is a save of its own if the program had come further,
// and the file has not just grown; in another start, much further.
func TestIsOverwritten(t *testing.T) {
	type save struct {
		step  int64
		start int
		size  int64
	}
	for _, tc := range []struct {
		what        string
		before, now save
		want        bool
	}{
		{"a later step", save{10, 1, 100}, save{11, 1, 100}, true},
		{"the first step", save{1, 1, 100}, save{2, 1, 100}, true},
		{"the same step", save{10, 1, 100}, save{10, 1, 100}, false},
		{"before the first report", save{0, 1, 100}, save{10, 1, 100}, false},
		{"an earlier step", save{10, 1, 100}, save{9, 1, 100}, false},
		{"a little longer", save{10, 1, 100}, save{11, 1, 110}, true},
		{"much longer", save{10, 1, 100}, save{11, 1, 111}, false},
		{"shorter", save{10, 1, 100}, save{11, 1, 50}, true},
		{"another start, some steps again", save{10, 1, 100}, save{14, 2, 100}, false},
		{"another start, much later", save{10, 1, 100}, save{15, 2, 100}, true},
		{"another start, very much later", save{10, 1, 100}, save{40, 2, 100}, true},
		{"starts that are not known", save{10, 0, 100}, save{11, 0, 100}, false},
	} {
		before, now := reusedAt("w.pt", 1, tc.before.step, tc.before.start, 1), reusedAt("w.pt", 1, tc.now.step, tc.now.start, 2)
		before.Size, now.Size = tc.before.size, tc.now.size
		if got := isOverwritten(before, now); got != tc.want {
			t.Errorf("%s: %v", tc.what, got)
		}
	}
}

func TestMayBeOverwritten(t *testing.T) {
	for _, tc := range []struct {
		name           string
		step, reported int64
		size           int64
		want           bool
	}{
		{"model_7.pt", 7, 9, 1, true},
		{"model_7.pt", 7, 8, 1, false},
		{"model_7.pt", 7, 9, copiedUnasked, true},
		{"model_7.pt", 7, 9, copiedUnasked + 1, false},
		{"step_7.pt", 7, 9, 1, false},
		{"epoch_7.pt", 7, 900, 1, false},
		{"last.pt", NoStep, 9, 1, false},
	} {
		c := reusedAt(tc.name, tc.step, tc.reported, 1, 1)
		c.Size = tc.size
		if got := c.mayBeOverwritten(); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// TestPrecedesByTime has checkpoints whose numbers are used again: what precedes was written before, and is another.
func TestPrecedesByTime(t *testing.T) {
	older, newer := reusedAt("slot_1.pt", NoStep, 10, 1, 1), reusedAt("slot_0.pt", NoStep, 20, 1, 2)
	again := reusedAt("slot_1.pt", NoStep, 30, 1, 3)
	for _, c := range []*Checkpoint{&older, &newer, &again} {
		c.reused = true
	}
	if !older.Precedes(&newer) || newer.Precedes(&older) || older.Precedes(&again) || !newer.Precedes(&again) {
		t.Error("they are not ordered by time")
	}
}

// TestRecordContinued has a program that says which step it has continued from: that is noted for a checkpoint
// whose step was not known and whose number is none.
func TestRecordContinued(t *testing.T) {
	for _, tc := range []struct {
		what           string
		step, reported int64 // of the checkpoint
		says           int64
		minute         int // when it was written that the program has continued from
		want           int64
	}{
		{"a number that counts saves", 3, 0, 300, 1, 300},
		{"twice as many steps", 3, 0, 8, 1, 8},
		{"fewer: the number may be the step", 3, 0, 7, 1, 0},
		{"known already", 3, 200, 300, 1, 200},
		{"written again since", 3, 0, 300, 0, 0},
		{"without a number", NoStep, 0, 300, 1, 0},
	} {
		s := openStore(t, t.TempDir(), "slot_*")
		name := "slot_3.pt"
		if tc.step == NoStep {
			name = "last.pt"
		}
		other := reusedAt("slot_9.pt", 9, 0, 0, 1)
		s.known = []Checkpoint{reusedAt(name, tc.step, tc.reported, 0, 1), other}
		from := reusedAt(name, tc.step, tc.reported, 0, tc.minute)
		s.RecordContinued(&from, tc.says)
		if got := s.known[0].first.Step; got != tc.want || s.known[1].first.Step != 0 {
			t.Errorf("%s: it is of step %d, want %d, and the other of %d", tc.what, got, tc.want, s.known[1].first.Step)
		}
		if s.RecordContinued(nil, tc.says); !s.continued.Is(&from) {
			t.Errorf("%s: continued from %v", tc.what, s.continued.Path)
		}
	}
}

// TestTrustByReports has reports of a start that show what it has finished, and late ones that do not.
func TestTrustByReports(t *testing.T) {
	for _, tc := range []struct {
		step  int64
		start int
		want  bool
	}{{31, 1, true}, {30, 1, false}, {29, 1, false}, {1, 2, true}} {
		s := openStore(t, t.TempDir(), "ckpt-*")
		c := reusedAt("ckpt-30.pt", 30, 30, 1, 1)
		c.untried = true
		s.known = []Checkpoint{c}
		if s.MarkTried(tc.step, tc.start); s.known[0].untried == tc.want {
			t.Errorf("after step %d of start %d it is untried: %v", tc.step, tc.start, s.known[0].untried)
		}
	}
}

func TestIsLast(t *testing.T) {
	s := openStore(t, t.TempDir(), "ckpt-*")
	c := reusedAt("ckpt-30.pt", 30, 30, 1, 1)
	if s.isLast(&c) {
		t.Error("without a program, one is the last")
	}
	for _, past := range []bool{false, true} {
		s.opts.IsPast = func(*Checkpoint) bool { return past }
		if s.isLast(&c) == past {
			t.Errorf("it is past: %v", past)
		}
	}
}

// TestOneNameIsCopied has a program that saves under one name with a number: from the save that shows it on, each has
// a copy. Where a name comes again since a new start makes some steps again, nothing is shown.
func TestOneNameIsCopied(t *testing.T) {
	for what, tc := range map[string]struct {
		steps, starts []int64
		want          bool // of the last
	}{
		"one name":             {[]int64{3, 60, 90}, []int64{1, 1, 1}, true},
		"steps made again":     {[]int64{300, 300, 300}, []int64{1, 2, 3}, false},
		"its number is a step": {[]int64{5, 5, 5}, []int64{1, 2, 3}, false},
	} {
		dir := t.TempDir()
		var now Moment
		s := openStore(t, dir, "model_5.bin")
		s.opts.Now = func() Moment { return now }
		for i, step := range tc.steps {
			now = Moment{Step: step, Attempt: int(tc.starts[i]), At: time.Now()}
			writeAt(t, dir, "model_5.bin", fmt.Sprintf("weights %d", i), 60-i)
			s.Refresh(true)
		}
		c, _ := s.Newest()
		isCopy := copied(c.record) != "" && c.record.VerifyCopy(t.Context(), s.root) == nil
		if s.Reuses() != tc.want || tc.want && !isCopy {
			t.Errorf("%s: reused: %v; the newest is recorded as %+v", what, s.Reuses(), c.record)
		}
	}
}

// TestOneOfSeveralInTurn has two names that are used in turn: neither is a program's only checkpoint, and needs a copy.
func TestOneOfSeveralInTurn(t *testing.T) {
	dir := childtest.Logdir(t, "slot_0", "slot_1")
	s := openStore(t, dir, "slot_*")
	s.reused = true
	for _, c := range s.Candidates(true) {
		if c.only {
			t.Errorf("%s is the only one", c.Path)
		}
	}
	childtest.Must(t, os.Remove(filepath.Join(dir, "slot_1")))
	if all := s.Candidates(true); len(all) != 1 || !all[0].only {
		t.Errorf("there is one: %+v", all)
	}
}
