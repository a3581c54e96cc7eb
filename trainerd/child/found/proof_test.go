//go:build unix

package found

import (
	"math"
	"path/filepath"
	"slices"
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
	if c, ok := s.Newest(math.MaxInt64); !ok || c.Step != 10 {
		t.Errorf("the newest is %v", c)
	}
}

// Of several folders that are found at once, as where a full disk took no records, one
// that lacks what the others have was cut.
func TestCutFolderAmongNew(t *testing.T) {
	dir := t.TempDir()
	for step, files := range map[string][]string{"5": {"a", "b"}, "6": {"b"}, "7": {"a", "b"}, "8": {"a", "b", "c"}} {
		for _, name := range files {
			childtest.Write(t, filepath.Join(dir, "c-"+step, name), "weights")
		}
	}
	added, bad := openStore(t, dir, "c-*").Refresh(true)
	if !slices.Equal(steps(added), []int64{5, 7, 8}) || len(bad) != 1 || bad[0].Step != 6 {
		t.Errorf("added %v, refused %v", steps(added), bad)
	}
}
