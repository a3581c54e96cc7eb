package logdir

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestFreeSpaceInBytes compares with what the system says in blocks: other programs may write
// meanwhile.
func TestFreeSpaceInBytes(t *testing.T) {
	dir := t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	want := int64(st.Bavail) * st.Bsize
	if got, err := FreeSpace(dir); err != nil || got < want/2 || got/2 > want {
		t.Errorf("FreeSpace = %d, %v; want about %d", got, err, want)
	}
}
