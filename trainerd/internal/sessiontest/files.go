package sessiontest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/internal/glob"
)

func MustNoErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func Files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(glob.Escape(dir), pattern))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = filepath.Base(name)
	}
	return names
}

func CopyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	MustNoErr(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}

// FlipByte damages a file near its beginning, where a checkpoint has its data.
func FlipByte(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	MustNoErr(t, err)
	b[min(10, len(b)-1)] ^= 0x40
	MustNoErr(t, os.WriteFile(name, b, 0o666))
}

// MemoryDir returns a folder in memory where there is one, for tests of many syncs.
func MemoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "restarts")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
