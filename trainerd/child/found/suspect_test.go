//go:build unix

package found

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestPutBack has a checkpoint of two files of one name in two folders, which a file names, set
// aside and put back: all is as it was. What the disk does not take of that is said, and the
// checkpoint is where it was then.
func TestPutBack(t *testing.T) {
	for _, fails := range []string{"", "rename b/w-20", "rename b/latest", "remove damaged"} {
		dir := childtest.Logdir(t, "a/w-10", "b/w-10", "a/w-20", "b/w-20")
		childtest.Write(t, filepath.Join(dir, "b/latest"), "w-20")
		s := openStore(t, dir, "*/w-*")
		s.Refresh(true)
		before := childtest.Below(t, dir)
		m, err := s.QuarantineSuspect(t.Context(), s.known[1], time.Now())
		if err != nil || m.Misnamed != nil || !slices.Equal(steps(s.known), []int64{10}) {
			t.Fatal(err, m.Misnamed, s.known)
		}
		if got := childtest.Read(t, filepath.Join(dir, "b/latest")); got != "w-10" {
			t.Errorf("while it is aside, latest has %q", got)
		}
		s.disk = childtest.PickyDisk{FS: s.disk, Logdir: dir, Fails: func(op, name string) bool {
			return fails != "" && strings.HasPrefix(op+" "+name, fails)
		}}
		whole := s.disk.(childtest.PickyDisk).FS
		back, err := s.PutBack(m)
		if (err == nil) != (fails == "") || back == (fails == "rename b/w-20") {
			t.Errorf("fails: %q; PutBack = %v, %v", fails, back, err)
		}
		left := childtest.Below(t, dir)
		_, err = os.Stat(m.Dir)
		switch fails {
		case "":
			if !slices.Equal(left, before) || childtest.Read(t, filepath.Join(dir, "b/latest")) != "w-20" || !os.IsNotExist(err) {
				t.Errorf("left are %v, latest has %q", left, childtest.Read(t, filepath.Join(dir, "b/latest")))
			}
		case "rename b/w-20":
			if slices.Contains(left, "a/w-20") || childtest.Read(t, filepath.Join(dir, "b/latest")) != "w-10" {
				t.Errorf("moved back by half: left are %v, latest has %q", left, childtest.Read(t, filepath.Join(dir, "b/latest")))
			}
			s.disk = whole
			if back, err := s.PutBack(m); err != nil || !back || !slices.Equal(childtest.Below(t, dir), before) {
				t.Errorf("again: %v, %v; left are %v", back, err, childtest.Below(t, dir))
			}
		default:
			if !slices.Contains(left, "a/w-20") || !slices.Contains(left, "b/w-20") {
				t.Errorf("%s: left are %v", fails, left)
			}
		}
	}
}

// TestCopyOfWhatIsAside has the only checkpoint of a program, which has a copy, set aside: the copy
// takes its place only if it is of other files, or the checkpoint is not aside, or no longer.
func TestCopyOfWhatIsAside(t *testing.T) {
	for name, tc := range map[string]struct {
		written, fails, back, saved bool
		want                        int
	}{
		"the same":                {want: 0},
		"of the one before":       {written: true, want: 1},
		"it was not moved":        {fails: true, want: 1},
		"it was put back":         {back: true, want: 1},
		"another was saved since": {saved: true, want: 1},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "last.safetensors")
		childtest.Write(t, file, childtest.TensorsOf(1))
		s := openStore(t, dir, "last*")
		s.Refresh(true)
		c, whole := s.known[0], s.disk
		if tc.written {
			childtest.Write(t, file, childtest.TensorsOf(2)+"2")
		}
		s.disk = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(op, _ string) bool { return tc.fails && op == "rename" }}
		m, err := s.QuarantineSuspect(t.Context(), c, time.Now())
		if (err != nil) != tc.fails {
			t.Errorf("%s: QuarantineSuspect = %v", name, err)
		}
		if tc.back {
			_, err := s.PutBack(m)
			childtest.Must(t, err)
		}
		if tc.saved {
			childtest.Write(t, file, childtest.TensorsOf(3))
			s.Refresh(true)
		}
		if tc.fails || tc.back || tc.saved {
			childtest.Must(t, os.Remove(file))
			s.Refresh(true)
		}
		if got := s.Gone(); len(got) != tc.want {
			t.Errorf("%s: %v are gone, want %d", name, got, tc.want)
		}
	}
}

// TestMayBeUnfinished has checkpoints after which the program has done nothing: one whose form
// does not show that it is whole may be half of one, until the program does something.
func TestMayBeUnfinished(t *testing.T) {
	dir := childtest.Logdir(t, "w-1.bin", "w-2.bin", "w-4/w")
	childtest.Write(t, filepath.Join(dir, "w-3.safetensors"), childtest.Tensors())
	s := openStore(t, dir, "w-*")
	s.opts.IsPast = func(c *Checkpoint) bool { return c.Step != 4 }
	s.Refresh(true)
	check := func(what string, want ...bool) {
		t.Helper()
		var got []bool
		for _, c := range s.Known() {
			got = append(got, c.MayBeUnfinished(s.root))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("at first", true, true, false, true)
	s.known[0].untried = false
	s.MarkTried(math.MaxInt64, 0)
	check("once the program has done something", false, false, false, false)
	s.known = s.known[:1]
	s.known[0].untried = true
	s.MarkTried(math.MaxInt64, 0)
	check("of the only one", false)
}

// TestCountsSteps has names with numbers: as good as steps are those that the program reports.
func TestCountsSteps(t *testing.T) {
	for _, tc := range []struct {
		name     string
		reported int64
		want     bool
	}{{"w-100", 100, true}, {"w-3", 300, false}, {"epoch_10", 10, true}, {"epoch_10", 400, false}, {"last", 7, false}} {
		c := &Checkpoint{Step: stepOfName(tc.name), files: []string{tc.name}, first: Moment{Step: tc.reported}}
		if got := c.CountsSteps(); got != tc.want {
			t.Errorf("%s, found at step %d: %v", tc.name, tc.reported, got)
		}
	}
	if c := (&Checkpoint{Step: 3}); c.CountsOtherUnit() || !slices.Contains(c.Attrs(), any("step")) {
		t.Errorf("one that is only known by its step counts something else, or is logged as %v", c.Attrs())
	}
	if c := (&Checkpoint{Step: NoStep}); slices.Contains(c.Attrs(), any("step")) {
		t.Errorf("without a step: %v", c.Attrs())
	}
}

// TestTwoWithoutStep has two checkpoints without a step: one of fewer files is not a half of the other,
// and one that the disk has not taken is not lost while there is the other.
func TestTwoWithoutStep(t *testing.T) {
	s := openStore(t, childtest.Logdir(t, "best.bin", "last.bin"), "*.bin")
	s.Refresh(true)
	best := s.known[0]
	best.files = []string{"best.bin", "best.opt"}
	s.known = []Checkpoint{best}
	last := s.seen[keyOf("last.bin", false)]
	if s.isBetweenFiles(last) {
		t.Error("the last is taken for half of the best")
	}
	s.refused[last.key()] = Rejected{Checkpoint: last, err: &notDurableError{syscall.EIO}}
	s.records[last.key()].Copy = CopiesDir + "/x"
	if got := s.Lost(); got != nil {
		t.Errorf("lost are %v", got)
	}
}
