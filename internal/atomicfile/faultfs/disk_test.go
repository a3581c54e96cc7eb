package faultfs

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// TestRemovedWhileOpen: what goes to a file that was removed is lost, also if another
// file has the name by then.
func TestRemovedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	fsys := New(0)
	file := func(name string) atomicfile.File {
		f, err := fsys.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	put := func(f atomicfile.File, text string) {
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	removed, replaced := file("removed"), file("replaced")
	for _, name := range []string{"removed", "replaced"} {
		if err := fsys.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	second := file("replaced")
	put(removed, "lost")
	put(replaced, "lost, too")
	put(second, "there")
	if err := fsys.SyncDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := fsys.SyncFile(filepath.Join(dir, "removed")); err == nil {
		t.Error("a file that was removed was synced by its name")
	}
	disk := NewDisk(dir, State{})
	for range fsys.Replay(disk) {
	}
	for state := range disk.States(nil, 0) {
		if diff := cmp.Diff(state.Files, map[string][]byte{"replaced": []byte("there")}); diff != "" {
			t.Errorf("%s (-got +want):\n%s", state.What, diff)
		}
	}
}
