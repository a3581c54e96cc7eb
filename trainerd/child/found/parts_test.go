//go:build unix

package found

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestAlternativesThatNeverCome has a pattern whose one half means nothing: two
// checkpoints in a row show that the program does without it.
func TestAlternativesThatNeverCome(t *testing.T) {
	dir := childtest.Logdir(t, "a_1")
	s := openStore(t, dir, "{a,b}_*")
	if added, bad := s.Refresh(true); added != nil || len(bad) != 1 {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	childtest.Write(t, filepath.Join(dir, "a_2"), "weights")
	if added, bad := s.Refresh(true); len(added) != 2 || len(bad) > 0 {
		t.Errorf("added %v, bad %v", added, bad)
	}
	if c, ok := s.Newest(math.MaxInt64); !ok || c.Step != 2 {
		t.Errorf("the newest is %v", c)
	}
}

// TestRanksThatAreMissing has files of two processes, one of which was killed before
// it had saved; then fewer processes, which two checkpoints in a row show.
func TestRanksThatAreMissing(t *testing.T) {
	dir := childtest.Logdir(t, "c_5_rank0", "c_5_rank1")
	s := openStore(t, dir, "c_*")
	s.Refresh(true)
	childtest.Write(t, filepath.Join(dir, "c_10_rank0"), "weights")
	for range 9 {
		if added, bad := s.Refresh(false); added != nil || bad != nil { // the other is about to come
			t.Fatalf("while it is written: added %v, bad %v", added, bad)
		}
	}
	added, bad := s.Refresh(true)
	if added != nil || len(bad) != 1 || !strings.Contains(bad[0].Error(), "c_#_rank1") {
		t.Fatalf("added %v, bad %v", added, bad)
	}
	childtest.Write(t, filepath.Join(dir, "c_15_rank0"), "weights")
	s.Refresh(true)
	if c, ok := s.Newest(math.MaxInt64); !ok || c.Step != 15 {
		t.Errorf("the newest is %v", c)
	}
}

// TestParts has what the alternatives of a pattern mean: files, also of bundles.
func TestParts(t *testing.T) {
	if got := partsOf("./a//{b,c}-*"); !slices.Equal(got, []string{"a/b-*", "a/c-*"}) {
		t.Errorf("alternatives %q", got)
	}
	for name, want := range map[string]bool{"m-1.index": true, "m-1.data-00000-of-00001": true, "m-1": true, "m-1.txt": false, "n-1.index": false} {
		if got := isPart("m-?", name); got != want {
			t.Errorf("m-? means %s: %v", name, got)
		}
	}
	if !isPart("m-?.index", "m-1.index") {
		t.Error("a pattern of indexes means none")
	}
}
