//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestSameDevice(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	if !sameDevice(dir, filepath.Dir(dir)) || sameDevice(dir, none) || sameDevice(none, dir) || sameDevice(none, none) {
		t.Error("wrong for a folder and its parent, or for one that does not exist")
	}
	if runtime.GOOS == "linux" && sameDevice("/proc", "/") {
		t.Error("/proc is taken for a part of /")
	}
}

// A parent on another file system is not synced: what is mounted in it is not
// made from here.
func TestSyncNamesStaysOnItsFileSystem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	// No directory of /proc can be synced, which is no reason to fail.
	if err := SyncNames(nil, "/proc/self"); err != nil {
		t.Error(err)
	}
	if err := OrOS(nil).SyncDir("/proc/self"); !CannotSync(err) {
		t.Errorf("SyncDir = %v, want an error that says that it cannot", err)
	}
	if err := SyncFile(nil, "/proc/self/status"); !CannotSync(err) {
		t.Errorf("SyncFile = %v, want an error that says that it cannot", err)
	}
	if err := SyncNames(nil, filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("a folder that does not exist: %v", err)
	}
}
