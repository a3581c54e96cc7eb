//go:build unix

package child

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// TestShortFiles has checkpoints of a form that does not say how long it is: a file that
// is shorter than those before it was cut, unless their sizes differ by as much.
func TestShortFiles(t *testing.T) {
	whole := func(int) string { return "weights of a fixed size" }
	for name, tc := range map[string]struct {
		name   string // with the step
		before func(step int) string
		then   string
		cut    bool
	}{
		"a cut one":          {"w-%d.bin", whole, "weights", true},
		"in a folder":        {"w-%d/model.bin", whole, "weights", true},
		"of a process":       {"w-%d-rank0.bin", whole, "weights", true},
		"a text":             {"w-%d.txt", whole, "weights", true},
		"a text in a folder": {"w-%d/log.txt", whole, "weights", false},
		"a longer one":       {"w-%d.bin", whole, "weights of a fixed size, and more", false},
		"sizes that vary":    {"w-%d.bin", func(step int) string { return whole(0) + strings.Repeat("!", step) }, "weights", true},
		"as they vary":       {"w-%d.bin", func(step int) string { return whole(0) + strings.Repeat("!", step) }, "weights of a fixed siz", false},
		"sizes that grow":    {"w-%d.bin", func(step int) string { return strings.Repeat("weights", step) }, "weights", false},
		"a form with length": {"w-%d.safetensors", func(int) string { return tensorsFile() }, "\x02\x00\x00\x00\x00\x00\x00\x00{}", false},
		"a pickle":           {"w-%d.pkl", func(int) string { return "\x80\x04of a fixed size." }, "\x80\x04.", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openShelf(t, dir, "w-*", retention.Last(1))
			for step := 1; step <= knownSizes; step++ {
				writeFile(t, filepath.Join(dir, fmt.Sprintf(tc.name, step)), tc.before(step))
				if added, bad := s.refresh(true); len(added) != 1 || bad != nil {
					t.Fatalf("added %v, bad %v", added, bad)
				}
				s.rotate()
			}
			writeFile(t, filepath.Join(dir, fmt.Sprintf(tc.name, 4)), tc.then)
			if tc.cut { // or about to be written
				for range 9 {
					if added, bad := s.refresh(false); added != nil || bad != nil {
						t.Fatalf("while it is written: added %v, bad %v", added, bad)
					}
				}
			}
			if added, bad := s.refresh(true); len(bad) == 1 != tc.cut || len(added) == 1 == tc.cut {
				t.Errorf("added %v, bad %v", added, bad)
			}
			if got := len(s.newestDamaged()) == 1; got != tc.cut {
				t.Errorf("it is moved aside: %v, want %v", got, tc.cut)
			}
		})
	}
}

// TestKilledInSaveKeepsOne has programs that are killed within a save, in forms that do
// not say whether they are complete, where only one checkpoint is kept: the next start has
// the one before, and nothing has deleted that.
func TestKilledInSaveKeepsOne(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, good, torn string
		fails               int // starts with the torn one, which the form does not tell from a whole one
	}{
		"a file":               {"w-*", "write w-3", "tear w-6", 2},
		"an empty file":        {"w-*", "write w-3", "empty w-6", 0},
		"a folder":             {"w-*", "write w-3/a w-3/b", "write w-6/a", 0},
		"the first of a group": {"{w,m}-*", "write w-3 m-3", "write w-6", 0},
		"ranks":                {"w-*", "write w-3-rank0 w-3-rank1", "write w-6-rank0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := strings.Repeat("|exit 1", tc.fails) + "|env STEP;list w-3*;resume 9"
			sv, out := supervise(t, "steps 1 3;"+tc.good+";pause;steps 4 5;await trainerd.manifests/*3.json;steps 6 6;"+tc.torn+";kill 9"+again)
			sv.Checkpoints, sv.Retention = tc.pattern, []retention.Policy{retention.Last(1)}
			if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2+tc.fails {
				t.Errorf("%+v, %v", exit, err)
			}
			if want := "STEP is \"3\"\nfound w-3"; !strings.Contains(out.String(), want) {
				t.Errorf("want %q in:\n%s", want, out)
			}
		})
	}
}

// TestShorterFromNowOn has a program whose checkpoints are shorter than before: the
// second one shows that it is no accident, whatever has become of the first.
func TestShorterFromNowOn(t *testing.T) {
	for _, moved := range []bool{false, true} {
		dir := t.TempDir()
		s := openShelf(t, dir, "w-*")
		write := func(step int, text string) {
			t.Helper()
			writeFile(t, filepath.Join(dir, fmt.Sprintf("w-%d", step)), text)
		}
		for step := 1; step <= knownSizes; step++ {
			write(step, "weights")
		}
		s.refresh(true)
		write(4, "w")
		if added, bad := s.refresh(true); added != nil || len(bad) != 1 {
			t.Fatalf("the first: added %v, bad %v", added, bad)
		}
		if moved {
			r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
			r.quarantineDamaged(t.Context())
		}
		write(5, "w")
		s.refresh(true)
		if c, ok := s.newest(noCeiling); !ok || c.Step != 5 {
			t.Errorf("moved %v: the newest is %v", moved, c)
		}
		write(6, "w")
		if added, bad := s.refresh(true); !slices.Contains(steps(added), 6) || bad != nil {
			t.Errorf("moved %v: later: added %v, bad %v", moved, added, bad)
		}
	}
}

// TestShortAfterOneThatWasSetAside has a short checkpoint that counted at first.
func TestShortAfterOneThatWasSetAside(t *testing.T) {
	dir := logdirOf(t, "w-1", "w-2", "w-3")
	s := openShelf(t, dir, "w-*")
	r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
	writeFile(t, filepath.Join(dir, "w-4"), "w")
	s.refresh(true) // all at once
	c, ok := s.newest(noCeiling)
	if !ok || c.Step != 4 {
		t.Fatalf("the newest is %v", c)
	}
	r.setAside(c)
	writeFile(t, filepath.Join(dir, "w-4"), "we")
	if added, bad := s.refresh(true); added != nil || len(bad) != 1 {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestCutTwiceAtOnePlace has a program that is killed twice after the same number of
// bytes, and has saved in between.
func TestCutTwiceAtOnePlace(t *testing.T) {
	dir := t.TempDir()
	s := openShelf(t, dir, "w-*")
	r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
	for step, text := range []string{"weights", "weights", "weights", "w", "weights", "w"} {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("w-%d", step)), text)
		_, bad := s.refresh(true)
		if got := len(bad) == 1; got != (text == "w") {
			t.Errorf("step %d: bad %v", step, bad)
		}
		r.quarantineDamaged(t.Context())
	}
}

// TestShortSince has a checkpoint that is cut after the run that recorded it: what it and
// others recorded says how long it was.
func TestShortSince(t *testing.T) {
	dir := t.TempDir()
	for step := range knownSizes {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("w-%d.bin", step+1)), "weights of a fixed size")
	}
	s := openShelf(t, dir, "w-*")
	s.refresh(true)
	writeFile(t, filepath.Join(dir, "w-3.bin"), "weights")
	s = openShelf(t, dir, "w-*")
	s.readRecords()
	if added, bad := s.refresh(true); len(added) != knownSizes-1 || len(bad) != 1 {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestLeastSizes has the sizes of files, and below which one counts as cut, or may.
func TestLeastSizes(t *testing.T) {
	for _, tc := range []struct {
		last       []int64
		cut, maybe int64
	}{
		{nil, 0, 0}, {[]int64{1000}, 0, 900}, {[]int64{1000, 990}, 0, 891},
		{[]int64{1000, 1000, 1000}, 1000, 0}, {[]int64{1000, 990, 980}, 940, 0},
	} {
		of := sizeOf{last: tc.last}
		if cut, maybe := of.least(), of.leastOfFew(); cut != tc.cut || maybe != tc.maybe {
			t.Errorf("%d: cut below %d, want %d; maybe below %d, want %d", tc.last, cut, tc.cut, maybe, tc.maybe)
		}
	}
}
