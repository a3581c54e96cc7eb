//go:build unix

package found

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestFoldersThatComeTogether has a first folder that the program has gone past when it
// is killed in the second: what the first has shows that the second was cut short.
func TestFoldersThatComeTogether(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "c-*")
	s.opts.IsPast = func(c *Checkpoint) bool { return c.Step == 10 }
	for _, name := range []string{"c-10/w", "c-10/m", "c-20/w"} {
		childtest.Write(t, filepath.Join(dir, name), "weights")
	}
	added, bad := s.Refresh(true)
	if !slices.Equal(steps(added), []int64{10}) || len(bad) != 1 || bad[0].Step != 20 {
		t.Errorf("added %v, bad %v", added, bad)
	}
	if c, ok := s.Newest(); !ok || c.Step != 10 {
		t.Errorf("the newest is %v", c)
	}
}

// Of several folders that are found at once, as where a full disk took no records, one
// that lacks what the others have was cut.
func TestCutFolderAmongNew(t *testing.T) {
	for _, tc := range []struct {
		files string
		want  []int64
	}{
		{"c-5/a c-5/b c-6/b c-7/a c-7/b c-8/a c-8/b c-8/c", []int64{5, 7, 8}},
		{"c-5/a c-5/b c-6/b c-7/a c-7/b", []int64{5, 7}},
	} {
		dir := childtest.Logdir(t, strings.Fields(tc.files)...)
		added, bad := openStore(t, dir, "c-*").Refresh(true)
		if !slices.Equal(steps(added), tc.want) || len(bad) != 1 || bad[0].Step != 6 {
			t.Errorf("%s: added %v, refused %v", tc.files, steps(added), bad)
		}
	}
}

// TestShorterThanTheOneBefore has a second folder with a raw file that is much shorter: whether it
// was finished is not known, unless it has the mark of its framework.
func TestShorterThanTheOneBefore(t *testing.T) {
	for _, tc := range []struct {
		mark   string
		length int
		counts bool
	}{{"m", 50, false}, {"m", 95, true}, {"trainer_state.json", 50, true}} {
		dir := t.TempDir()
		s := openStore(t, dir, "c-*")
		s.opts.IsPast = func(c *Checkpoint) bool { return c.Step == 10 }
		for i, length := range []int{100, tc.length} {
			step := []string{"10", "20"}[i]
			childtest.Write(t, filepath.Join(dir, "c-"+step, "w.bin"), strings.Repeat("w", length))
			childtest.Write(t, filepath.Join(dir, "c-"+step, tc.mark), "{}")
			s.Refresh(true)
		}
		if c, ok := s.Newest(); !ok || c.Step != 20 || c.OnTrial == tc.counts {
			t.Errorf("%+v: the newest is %+v", tc, c)
		}
	}
}

// TestWrittenWhileTraining has a folder that grows from scan to scan. A program that has reported
// a later step before a scan, and has changed the folder after it, does not wait for its saves.
func TestWrittenWhileTraining(t *testing.T) {
	type look struct {
		attempt int
		step    int64
		writes  string
	}
	for _, tc := range []struct {
		name  string
		looks []look
		want  bool
	}{
		{"at once", []look{{1, 10, "w"}, {1, 12, ""}, {1, 14, ""}}, false},
		{"a look falls within the save", []look{{1, 10, "w"}, {1, 15, "m"}, {1, 17, ""}}, false},
		{"two looks fall within it", []look{{1, 10, "w"}, {1, 10, "m"}, {1, 13, "n"}}, false},
		{"a step before a file", []look{{1, 10, "w"}, {1, 11, ""}, {1, 12, "m"}}, true},
		{"steps between three files", []look{{1, 10, "w"}, {1, 12, "m"}, {1, 14, "n"}}, true},
		{"steps before it is found", []look{{1, 12, "w"}, {1, 12, "m"}}, false},
		{"written again by the next start", []look{{1, 10, "w"}, {1, 12, ""}, {2, 10, "m"}}, false},
		{"late, then the next start", []look{{1, 10, "w"}, {1, 12, ""}, {1, 13, "m"}, {2, 11, ""}}, true},
	} {
		dir := t.TempDir()
		s := openStore(t, dir, "c-*")
		var now Moment
		s.opts.Now = func() Moment { return now }
		s.opts.IsPast = func(*Checkpoint) bool { return false }
		for _, l := range tc.looks {
			if now = (Moment{Step: l.step, Attempt: l.attempt}); l.writes != "" {
				childtest.Write(t, filepath.Join(dir, "c-10", l.writes), "weights")
			}
			s.Refresh(false)
		}
		if c := s.seen[key{step: 10}]; c.IsLate() != tc.want {
			t.Errorf("%s: late %v", tc.name, c.IsLate())
		}
	}
}

// TestOverwrittenIsNotLate has a checkpoint that counted before the program has overwritten it:
// that is another save.
func TestOverwrittenIsNotLate(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "last")
	now := Moment{Step: 10}
	s.opts.Now = func() Moment { return now }
	for _, text := range []string{"weights", "", "", "more weights"} {
		if text != "" {
			childtest.Write(t, filepath.Join(dir, "last"), text)
		}
		s.Refresh(false)
		now.Step++
	}
	if c := s.seen[key{NoStep, "last"}]; c.IsLate() || c.FirstFound().Step != 13 {
		t.Errorf("%+v is late", c)
	}
}

// TestAlikeIsProven has two first folders that are found at once, and no step since: that both have the same files
// shows that they were finished.
func TestAlikeIsProven(t *testing.T) {
	for second, want := range map[string]bool{"c-20/m": true, "c-20/n": false} {
		dir := t.TempDir()
		s := openStore(t, dir, "c-*")
		s.opts.IsPast = func(*Checkpoint) bool { return false }
		for _, name := range []string{"c-10/w", "c-10/m", "c-20/w", second} {
			childtest.Write(t, filepath.Join(dir, name), "weights")
		}
		if added, bad := s.Refresh(true); (len(added) == 2) != want || bad != nil {
			t.Errorf("the second has %s: added %v, bad %v", second, added, bad)
		}
	}
}
