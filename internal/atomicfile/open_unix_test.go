//go:build unix

package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

// TestOpenNoPipe has a pipe to which nobody writes, a device, and a link to each: none is opened,
// and folders and files are.
func TestOpenNoPipe(t *testing.T) {
	dir := t.TempDir()
	pipe, link, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Skip(err)
	}
	if err := errors.Join(os.Symlink(pipe, link), os.WriteFile(file, []byte("text"), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, link, os.DevNull} {
		if _, err := atomicfile.Open(nil, name); !errors.Is(err, atomicfile.ErrNotRegular) {
			t.Errorf("%s: err = %v", name, err)
		}
		if b, err := atomicfile.ReadFileLimit(nil, name, 100, nil); b != nil || !errors.Is(err, atomicfile.ErrNotRegular) {
			t.Errorf("%s: read %q, err = %v", name, b, err)
		}
	}
	for _, name := range []string{dir, file} {
		f, err := atomicfile.Open(nil, name)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	const want = "it has 4 bytes; want at most 3"
	if _, err := atomicfile.ReadFileLimit(nil, file, 3, nil); err == nil || errors.Unwrap(err).Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
}
