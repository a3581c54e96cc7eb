//go:build unix

package found

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
)

// TestSweepFollowsNoLink has a link to a folder under a temporary name, as a kill leaves it: it
// goes, and what is in the folder stays.
func TestSweepFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	childtest.Write(t, filepath.Join(dir, "s_10/a.safetensors"), childtest.Tensors())
	childtest.Must(t, os.Symlink("s_10", atomicfile.TempName(filepath.Join(dir, "latest"))))
	s := openStore(t, dir, "s_*")
	s.Refresh(true)
	whole := s.disk
	s.disk = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(op, _ string) bool { return op == "remove" }}
	if s.Sweep() == nil {
		t.Error("that the link stays is not said")
	}
	s.disk = whole
	childtest.Must(t, s.Sweep())
	if got := childtest.Below(t, dir); !slices.Equal(got, []string{"s_10/a.safetensors"}) {
		t.Errorf("left are %v", got)
	}
}

// TestNamesAreCorrectedLater has a disk that does not take what is to name another checkpoint
// than the damaged one: the next start tries again, but not once the checkpoint is back.
func TestNamesAreCorrectedLater(t *testing.T) {
	for _, back := range []bool{false, true} {
		dir := t.TempDir()
		childtest.Write(t, filepath.Join(dir, "s_10.safetensors"), childtest.Tensors())
		childtest.Write(t, filepath.Join(dir, "s_20.safetensors"), "x")
		childtest.Write(t, filepath.Join(dir, "latest"), "s_20.safetensors")
		whole := atomicfile.OrOS(nil)
		disk := &childtest.Swappable{FS: whole}
		s := storeOn(t, disk, dir, "s_*")
		s.Refresh(true)
		disk.FS = childtest.PickyDisk{FS: whole, Logdir: dir, Fails: func(op, name string) bool { return op == "rename" && name == "latest" }}
		clearDamaged(t.Context(), s)
		if got := childtest.Read(t, filepath.Join(dir, "latest")); got != "s_20.safetensors" {
			t.Fatalf("latest has %q", got)
		}
		if s.Correct() == nil {
			t.Error("that it still names the damaged one is not said")
		}
		want := "s_10.safetensors"
		if back {
			want = "s_20.safetensors"
			childtest.Write(t, filepath.Join(dir, want), childtest.Tensors())
		}
		disk.FS = whole
		s.Refresh(true)
		clearDamaged(t.Context(), s)
		if got := childtest.Read(t, filepath.Join(dir, "latest")); got != want {
			t.Errorf("latest has %q, want %q", got, want)
		}
	}
}
