package found

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// lowerDisk renames as overlayfs does: no folder that was there before it was mounted, as those of
// a container's image.
type lowerDisk struct {
	atomicfile.FS
	lower map[string]bool
}

func (l lowerDisk) Rename(from, to string) error {
	if l.lower[from] {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EXDEV}
	}
	return l.FS.Rename(from, to)
}

// TestFoldersOfLowerLayer deletes a checkpoint that is a folder of a lower layer, and moves a damaged
// one aside.
func TestFoldersOfLowerLayer(t *testing.T) {
	dir := t.TempDir()
	lower := map[string]bool{}
	for _, name := range []string{"ckpt-1", "ckpt-2", "ckpt-3"} {
		folder := filepath.Join(dir, name)
		lower[folder] = true
		childtest.Must(t, os.MkdirAll(filepath.Join(folder, "rank0"), 0o777))
		for _, file := range []string{"a.json", "rank0/b.json"} {
			childtest.Must(t, os.WriteFile(filepath.Join(folder, file), []byte(`{"a": 1}`), 0o666))
		}
	}
	s := openStore(t, dir, "ckpt-*", retention.Last(1))
	s.disk = lowerDisk{s.disk, lower}
	s.Refresh(true)
	deleted, err := s.Rotate()
	if err != nil || !slices.Equal(steps(deleted), []int64{1, 2}) {
		t.Errorf("deleted %v, %v", steps(deleted), err)
	}
	newest, ok := s.Before(&Checkpoint{Step: 100})
	if !ok || newest.Step != 3 {
		t.Fatalf("the newest is %v, %v", newest, ok)
	}
	m, err := s.Quarantine(t.Context(), newest, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); slices.ContainsFunc(entries, func(e os.DirEntry) bool { return lower[filepath.Join(dir, e.Name())] }) {
		t.Errorf("left are %v", entries)
	}
	if _, err := os.Stat(filepath.Join(m.Dir, "ckpt-3", "rank0", "b.json")); err != nil {
		t.Error(err)
	}
}
