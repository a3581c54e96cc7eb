package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file system in memory has no use for direct writes.
func TestNoDirectWritesInMemory(t *testing.T) {
	f, err := os.CreateTemp("/dev/shm", "direct-")
	if err != nil {
		t.Skip(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if fileSystemOf(f) != unix.TMPFS_MAGIC {
		t.Skip("/dev/shm is no memory")
	}
	if w := (osFile{f}).Direct(); w != nil {
		t.Errorf("it has %v", w)
	}
}

// asyncOn returns an asyncWriter on a file, opened in some way.
func asyncOn(t *testing.T, flags int) *asyncWriter {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	w, err := newAsyncWriter(f)
	if err != nil {
		t.Skip(err) // forbidden here, as in some containers
	}
	return w
}

// The kernel's errors are those of the writer, and none of them blocks.
func TestAsyncWriterFails(t *testing.T) {
	var b [512]byte
	readOnly := asyncOn(t, os.O_RDONLY)
	if err := readOnly.Begin(b[:], 0); !errors.Is(err, unix.EBADF) {
		t.Errorf("Begin on a file that is read-only: %v", err)
	}
	readOnly.allocated = 512
	if err := readOnly.Begin(b[:], 0); err == nil {
		if _, err = readOnly.Wait(); !errors.Is(err, unix.EBADF) {
			t.Errorf("Wait on a file that is read-only: %v", err)
		}
	}
	if err := readOnly.End(512); err == nil {
		t.Error("a file that is read-only was truncated")
	}

	over := asyncOn(t, os.O_RDWR)
	if err := over.Begin(b[:], 0); err != nil {
		t.Fatal(err)
	}
	if err := over.End(100); err != nil || over.busy { // without a Wait
		t.Errorf("End: %v", err)
	}
	if info, err := over.file.Stat(); err != nil || info.Size() != 100 {
		t.Errorf("it ends with %d bytes, %v", info.Size(), err)
	}
	if _, err := over.Wait(); !errors.Is(err, unix.EINVAL) {
		t.Errorf("Wait after End: %v", err)
	}
	if err := over.Begin(b[:], 0); !errors.Is(err, unix.EINVAL) {
		t.Errorf("Begin after End: %v", err)
	}

	closed := asyncOn(t, os.O_RDWR)
	closed.file.Close()
	if err := closed.End(0); !errors.Is(err, os.ErrClosed) && !errors.Is(err, unix.EBADF) {
		t.Errorf("End of a closed file: %v", err)
	}
}
