package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// inodesFS is a disk with room for a number of files, all in one directory, which only
// the making of a file tells.
type inodesFS struct {
	atomicfile.FS
	most int
	err  error
}

func (f inodesFS) Create(name string) (atomicfile.File, error) {
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) >= f.most {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.Join(err, f.err)}
	}
	return f.FS.Create(name)
}

func (f inodesFS) FreeSpace(string) (int64, error) { return 1 << 40, nil }

// TestFullWithoutForecast has disks that are full by something else than bytes. Of three
// checkpoints of three files each, and the state file, two and a new one fit: after one save that
// fails, what retention would delete after a save goes before it, and all succeed.
func TestFullWithoutForecast(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		dir := sessiontest.MemoryDir(t)
		s := &Saver{MaxToKeep: 3, FS: inodesFS{atomicfile.OrOS(nil), 1 + 3*3 + 1, full}}
		path, failed := filepath.Join(dir, "m"), 0
		for step := range int64(8) {
			if _, err := s.Save(t.Context(), twoVariables(float32(step)), path, step); err != nil {
				failed++
				if !errors.Is(err, full) || !strings.Contains(err.Error(), "too many files") {
					t.Errorf("%v: step %d: %v", full, step, err)
				}
			}
		}
		if got := steps(t, dir); failed != 1 || !cmp.Equal(got, []int64{5, 6, 7}) {
			t.Errorf("%v: %d saves failed; checkpoints %v", full, failed, got)
		}
		s = &Saver{MaxToKeep: 1, FS: inodesFS{atomicfile.OrOS(nil), 0, full}}
		for step := range int64(3) {
			if _, err := s.Save(t.Context(), twoVariables(1), path, 10+step); err == nil {
				t.Errorf("%v: there was room", full)
			}
		}
		if got := steps(t, dir); !cmp.Equal(got, []int64{5, 6, 7}) {
			t.Errorf("%v: checkpoints %v after saves that had no room", full, got)
		}
	}
}
