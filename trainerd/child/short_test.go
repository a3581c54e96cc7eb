//go:build unix

package child

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

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
			r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
			r.quarantineDamaged(t.Context())
		}
		write(5, "w")
		s.Refresh(true)
		if c, ok := s.Newest(noCeiling); !ok || c.Step != 5 {
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
	s := openShelf(t, dir, "w-*")
	r := &run{Supervisor: &Supervisor{}, log: discard, store: s, counts: &counts{}}
	childtest.Write(t, filepath.Join(dir, "w-4"), "w")
	s.Refresh(true) // all at once
	c, ok := s.Newest(noCeiling)
	if !ok || c.Step != 4 {
		t.Fatalf("the newest is %v", c)
	}
	r.setAside(c)
	childtest.Write(t, filepath.Join(dir, "w-4"), "we")
	if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
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
		childtest.Write(t, filepath.Join(dir, fmt.Sprintf("w-%d", step)), text)
		_, bad := s.Refresh(true)
		if got := len(bad) == 1; got != (text == "w") {
			t.Errorf("step %d: bad %v", step, bad)
		}
		r.quarantineDamaged(t.Context())
	}
}
