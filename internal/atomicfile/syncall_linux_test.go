package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A file on another file system than the first is left for a sync of its own, and
// so are all if it is not known what a sync of theirs does.
func TestSyncFileSystemLeavesOthers(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "syncall-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(shm)
	own := filepath.Join(shm, "own")
	if err := os.WriteFile(own, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	const other = "/proc/self/status"
	if rest, err := syncFileSystem([]string{own, other, own}); err != nil || !slices.Equal(rest, []string{other}) {
		t.Errorf("with one of another: %q, %v", rest, err)
	}
	if rest, err := syncFileSystem([]string{other, own}); err != nil || !slices.Equal(rest, []string{other, own}) {
		t.Errorf("not known: %q, %v", rest, err)
	}
	for _, names := range [][]string{{own + "2", own}, {own, own + "2"}} {
		if _, err := syncFileSystem(names); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, want ErrNotExist", names, err)
		}
	}
}

// Every file that cannot be synced is reported.
func TestSyncAllReportsEach(t *testing.T) {
	dir := t.TempDir()
	err := SyncAll([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")})
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != 2 {
		t.Errorf("two files that do not exist: %v", err)
	}
	if err := SyncAll([]string{"/proc/self/comm"}); !CannotSync(err) {
		t.Errorf("a file of /proc: %v", err)
	}
}
