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

// roomFS is a disk that says how much is free, or why it cannot tell, and calls before for each
// file that is made.
type roomFS struct {
	atomicfile.FS
	free   int64
	unsure error
	before func() error
}

func (f *roomFS) FreeSpace(string) (int64, error) { return f.free, f.unsure }

func (f *roomFS) Create(name string) (atomicfile.File, error) {
	if err := f.before(); err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return f.FS.Create(name)
}

// TestFullSaysWhatIsLeft explains a full disk by files and quotas only if it had the bytes, if
// only just, and never by the bytes of a disk that does not tell them.
func TestFullSaysWhatIsLeft(t *testing.T) {
	path := filepath.Join(sessiontest.MemoryDir(t), "m")
	s, sess := &Saver{}, twoVariables(1)
	cut, err := s.Snapshot(t.Context(), sess, "")
	sessiontest.MustNoErr(t, err)
	need := s.need(cut)
	cut.Close()
	for name, c := range map[string]struct {
		free   int64
		unsure error
		says   bool
	}{
		"just what is needed": {need, nil, true},
		"not told":            {need, syscall.EIO, false},
	} {
		s.FS = &roomFS{atomicfile.OrOS(nil), c.free, c.unsure, func() error { return syscall.ENOSPC }}
		_, err := s.Save(t.Context(), sess, path, 1)
		if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "bytes left") != c.says {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForecastIsTrusted has a disk that said it was full, and has room again: what retention would
// delete after a save is there until the save is done.
func TestForecastIsTrusted(t *testing.T) {
	dir := sessiontest.MemoryDir(t)
	path, sess := filepath.Join(dir, "m"), twoVariables(1)
	disk := &roomFS{FS: atomicfile.OrOS(nil), free: 1 << 40, before: func() error { return nil }}
	s := &Saver{MaxToKeep: 2, FS: disk}
	save(t, s, sess, path, 1)
	disk.free = 1
	var full *NoSpaceError
	if _, err := s.Save(t.Context(), sess, path, 2); !errors.As(err, &full) {
		t.Fatalf("Save on a full disk = %v; want a *NoSpaceError", err)
	}
	disk.free = 1 << 40
	save(t, s, sess, path, 3)
	var during []int64
	disk.before = func() error {
		if during == nil {
			during = steps(t, dir)
		}
		return nil
	}
	save(t, s, sess, path, 4)
	if after := steps(t, dir); !cmp.Equal(during, []int64{1, 3}) || !cmp.Equal(after, []int64{3, 4}) {
		t.Errorf("checkpoints %v when the save began, %v after it", during, after)
	}
}
