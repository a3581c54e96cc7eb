package logdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

// TestRemoveUnused has runs that were refused: what one has made goes with its lock file, and
// nothing that was there before, or that somebody else has made or locked meanwhile.
func TestRemoveUnused(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after func(t *testing.T, dir string)
		stays         string // below the parent of the folders that were missing
	}{
		"all was missing":        {stays: "."},
		"the folder above is":    {before: makeFolder(".."), stays: "logs"},
		"the folder is":          {before: makeFolder("."), stays: "logs/a/trainerd.lock"},
		"the run has written":    {after: writeFile("run-report.json"), stays: "logs/a/run-report.json"},
		"another run is next":    {after: writeFile("../b"), stays: "logs/b"},
		"another process has it": {after: lockAgain, stays: "logs/a/trainerd.lock"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "logs", "a")
			if tc.before != nil {
				tc.before(t, dir)
			}
			top := Missing(dir)
			sessiontest.MustNoErr(t, os.MkdirAll(dir, 0o777))
			lock, err := Acquire(dir, nil)
			sessiontest.MustNoErr(t, err)
			sessiontest.MustNoErr(t, lock.Release())
			if tc.after != nil {
				tc.after(t, dir)
			}
			sessiontest.MustNoErr(t, RemoveUnused(dir, top))
			if _, err := os.Stat(filepath.Join(parent, tc.stays)); err != nil {
				t.Error(err)
			}
			if entries, err := os.ReadDir(parent); tc.stays == "." && (err != nil || len(entries) > 0) {
				t.Errorf("%v stay, %v", entries, err)
			}
			if _, err := os.Stat(dir); tc.stays == "logs" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the logdir stays: %v", err)
			}
		})
	}
}

func makeFolder(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) { sessiontest.MustNoErr(t, os.MkdirAll(filepath.Join(dir, name), 0o777)) }
}

func writeFile(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666))
	}
}

func lockAgain(t *testing.T, dir string) {
	lock, err := Acquire(dir, nil)
	sessiontest.MustNoErr(t, err)
	t.Cleanup(func() { sessiontest.MustNoErr(t, lock.Release()) })
}

// TestLockOfRemovedFile has runs that are refused, and remove their lock file, while others lock
// the logdir: at no time do two have it.
func TestLockOfRemovedFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	sessiontest.MustNoErr(t, os.Mkdir(dir, 0o777))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			if lock, _, _ := acquireLock(filepath.Join(dir, LockFile)); lock != nil {
				os.Remove(filepath.Join(dir, LockFile))
				lock.Release()
			}
		}
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		lock, _, err := acquireLock(filepath.Join(dir, LockFile))
		if lock == nil {
			sessiontest.MustNoErr(t, err)
			continue
		}
		if second, _, _ := acquireLock(filepath.Join(dir, LockFile)); second != nil {
			t.Fatal("two have the lock")
		}
		sessiontest.MustNoErr(t, lock.Release())
	}
}
