//go:build unix

package found

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestShortSince has a checkpoint that is cut after the run that recorded it: what it and
// others recorded says how long it was.
func TestShortSince(t *testing.T) {
	dir := t.TempDir()
	for step := range knownSizes {
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d.bin", step+1)), "weights of a fixed size")
	}
	s := openStore(t, dir, "w-*")
	s.Refresh(true)
	childtest.Write(t, filepath.Join(dir, "w-3.bin"), "weights")
	s = openStore(t, dir, "w-*")
	s.ReadRecords()
	if added, bad := s.Refresh(true); len(added) != knownSizes-1 || len(bad) != 1 {
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

// TestMaybeShort has the second checkpoint of a program, shorter than the first: it may have been
// cut, but not in a folder with the file that its framework writes last.
func TestMaybeShort(t *testing.T) {
	const long, short = "weights of a fixed size", "weights"
	for name, tc := range map[string]struct {
		first  string
		second map[string]string
		want   bool
	}{
		"a file":                     {"w-1.bin", map[string]string{"w-2.bin": short}, true},
		"a file of the same size":    {"w-1.bin", map[string]string{"w-2.bin": long}, false},
		"in a folder":                {"w-1/a", map[string]string{"w-2/a": short}, true},
		"in a folder that is sealed": {"w-1/a", map[string]string{"w-2/a": short, "w-2/trainer_state.json": "{}"}, false},
	} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, tc.first), long)
		s := openStore(t, dir, "w-*")
		s.Refresh(true)
		for file, text := range tc.second {
			childtest.Write(t, filepath.Join(dir, file), text)
		}
		all := s.Candidates(true)
		if len(all) != 1 || s.maybeShort(&all[0]) != tc.want {
			t.Errorf("%s: it may be short: %v; candidates %v", name, !tc.want, all)
		}
	}
}

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
		"at the limit":       {"w-%d.bin", func(step int) string { return strings.Repeat("w", 20+step) }, strings.Repeat("w", 17), false},
		"below the limit":    {"w-%d.bin", func(step int) string { return strings.Repeat("w", 20+step) }, strings.Repeat("w", 16), true},
		"as they vary":       {"w-%d.bin", func(step int) string { return whole(0) + strings.Repeat("!", step) }, "weights of a fixed siz", false},
		"sizes that grow":    {"w-%d.bin", func(step int) string { return strings.Repeat("weights", step) }, "weights", false},
		"a form with length": {"w-%d.safetensors", func(int) string { return childtest.Tensors() }, "\x02\x00\x00\x00\x00\x00\x00\x00{}", false},
		"a pickle":           {"w-%d.pkl", func(int) string { return "\x80\x04of a fixed size." }, "\x80\x04.", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, "w-*", retention.Last(1))
			for step := 1; step <= knownSizes; step++ {
				childtest.Write(t, filepath.Join(dir, fmt.Sprintf(tc.name, step)), tc.before(step))
				if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
					t.Fatalf("added %v, bad %v", added, bad)
				}
				s.Rotate()
			}
			childtest.Write(t, filepath.Join(dir, fmt.Sprintf(tc.name, 4)), tc.then)
			if tc.cut { // or about to be written
				for range 9 {
					if added, bad := s.Refresh(false); added != nil || bad != nil {
						t.Fatalf("while it is written: added %v, bad %v", added, bad)
					}
				}
			}
			if added, bad := s.Refresh(true); len(bad) == 1 != tc.cut || len(added) == 1 == tc.cut {
				t.Errorf("added %v, bad %v", added, bad)
			}
			if got := len(s.NewestDamaged()) == 1; got != tc.cut {
				t.Errorf("it is moved aside: %v, want %v", got, tc.cut)
			}
		})
	}
}

// TestShorterFromNowOn has a program whose checkpoints are shorter than before: the
// second one shows that it is no accident, whatever has become of the first.
func TestShorterFromNowOn(t *testing.T) {
	for _, moved := range []bool{false, true} {
		dir := t.TempDir()
		s := openStore(t, dir, "w-*")
		write := func(step int, text string) {
			t.Helper()
			childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d", step)), text)
		}
		for step := 1; step <= 3; step++ {
			write(step, "weights")
		}
		s.Refresh(true)
		write(4, "w")
		if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
			t.Fatalf("the first: added %v, bad %v", added, bad)
		}
		if moved {
			clearDamaged(t.Context(), s)
		}
		write(5, "w")
		s.Refresh(true)
		if c, ok := s.Newest(); !ok || c.Step != 5 {
			t.Errorf("moved %v: the newest is %v", moved, c)
		}
		write(6, "w")
		if added, bad := s.Refresh(true); !slices.Contains(steps(added), 6) || bad != nil {
			t.Errorf("moved %v: later: added %v, bad %v", moved, added, bad)
		}
	}
}

// TestShortAfterOneThatWasSetAside has a short checkpoint that counted at first.
func TestShortAfterOneThatWasSetAside(t *testing.T) {
	dir := childtest.Logdir(t, "w-1", "w-2", "w-3")
	s := openStore(t, dir, "w-*")
	childtest.Write(t, filepath.Join(dir, "w-4"), "w")
	s.Refresh(true) // all at once
	c, ok := s.Newest()
	if !ok || c.Step != 4 {
		t.Fatalf("the newest is %v", c)
	}
	_, err := s.QuarantineSuspect(t.Context(), c, time.Now())
	childtest.Must(t, err)
	childtest.Write(t, filepath.Join(dir, "w-4"), "we")
	if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestCutTwiceAtOnePlace has a program that is killed twice after the same number of
// bytes, and has saved in between.
func TestCutTwiceAtOnePlace(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "w-*")
	for step, text := range []string{"weights", "weights", "weights", "w", "weights", "w"} {
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d", step)), text)
		_, bad := s.Refresh(true)
		if got := len(bad) == 1; got != (text == "w") {
			t.Errorf("step %d: bad %v", step, bad)
		}
		clearDamaged(t.Context(), s)
	}
}

// TestShortOfTwo has checkpoints of two files: the second is cut once.
func TestShortOfTwo(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "{w,opt}-*")
	for step, text := range []string{"weights", "weights", "weights", "w"} {
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("opt-%d", step)), "optimizer")
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d", step)), text)
		if added, bad := s.Refresh(true); (len(bad) == 1) != (text == "w") || (len(added) == 1) == (text == "w") {
			t.Errorf("step %d: added %v, bad %v", step, added, bad)
		}
	}
}

// TestLinkIsNotShort has a program that from now on has a link where its folders had a file.
func TestLinkIsNotShort(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, "w-*")
	for _, step := range []string{"1", "2", "3"} {
		childtest.Write(t, filepath.Join(dir, "w-"+step, "base.bin"), strings.Repeat("weights", 100))
		childtest.Write(t, filepath.Join(dir, "w-"+step, "model.bin"), "weights")
		s.Refresh(true)
	}
	childtest.Write(t, filepath.Join(dir, "w-4", "model.bin"), "weights")
	childtest.Must(t, os.Symlink("../w-3/base.bin", filepath.Join(dir, "w-4", "base.bin")))
	if added, bad := s.Refresh(true); len(added) != 1 || bad != nil {
		t.Errorf("added %v, bad %v", added, bad)
	}
}

// TestSizesOfNumberedFiles has checkpoints of files whose names differ in numbers, one of them
// shorter than the others: each is compared with that of its number.
func TestSizesOfNumberedFiles(t *testing.T) {
	for _, form := range []string{"c-%d/w-%d.bin", "c-%d/sub/%[2]d", "c-step%d-%d.bin"} {
		dir := t.TempDir()
		s := openStore(t, dir, "c-*")
		write := func(step, file, length int) {
			childtest.Write(t, filepath.Join(dir, fmt.Sprintf(form, step, file)), strings.Repeat("w", length))
		}
		for step := 10; step < 16; step++ {
			for file := range 12 {
				write(step, file, map[bool]int{true: 40, false: 100}[file == 11]) // which is sorted before 2
			}
			if added, bad := s.Refresh(true); bad != nil || step > 10 && !slices.Equal(steps(added), []int64{int64(step)}) {
				t.Errorf("%s: step %d: added %v, bad %v", form, step, steps(added), bad)
			}
		}
		if !strings.Contains(form, "/") {
			continue // such names are never the same again
		}
		for file := range 12 {
			write(16, file, 40)
		}
		if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
			t.Errorf("%s, cut: added %v, bad %v", form, steps(added), bad)
		}
	}
}
