//go:build unix

package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestLogdirIsLost takes the logdir away from a program that runs.
func TestLogdirIsLost(t *testing.T) {
	const lock = "trainerd.lock"
	for name, tt := range map[string]struct {
		harm  func(t *testing.T, logdir string)
		taken bool // by another run
		saved bool // the program was given the time
	}{
		"moved": {func(t *testing.T, logdir string) { must(t, os.Rename(logdir, logdir+"2")) }, false, false},
		"another run": {func(t *testing.T, dir string) {
			// At once, or the run makes the lock file again first.
			elsewhere := t.TempDir()
			other, err := logdir.Acquire(elsewhere, nil)
			must(t, err)
			t.Cleanup(func() { other.Release() })
			must(t, os.Rename(filepath.Join(elsewhere, lock), filepath.Join(dir, lock)))
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, "polite ckpt-2")
			done := make(chan error, 1)
			go func() {
				_, err := sv.Run(t.Context())
				done <- err
			}()
			out.await(t, "ready")
			tt.harm(t, sv.Logdir)
			err := <-done
			var lost *logdir.LostError
			if !errors.As(err, &lost) || is[*logdir.LockedError](err) != tt.taken {
				t.Errorf("Run = %v", err)
			}
			if _, err := os.Stat(filepath.Join(sv.Logdir, "ckpt-2")); (err == nil) != tt.saved {
				t.Errorf("the program's last checkpoint: %v", err)
			}
		})
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A program whose logdir was deleted, or emptied, is asked at a stop for what it had
// saved, and the config of the run and its events are there again.
func TestLogdirDeleted(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, dir string){
		"deleted": func(_ *testing.T, dir string) {
			for os.RemoveAll(dir) != nil {
				// The run has written something meanwhile.
			}
		},
		"emptied": func(t *testing.T, dir string) {
			entries, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range entries {
				must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sv, out := supervise(t, "onsignal ckpt-2 steps 1 2;onsignal ckpt-2")
			sv.SaveSignal, sv.Config = syscall.SIGUSR1, []byte("# a config\n")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := sv.Run(ctx)
				done <- err
			}()
			out.await(t, "ready")
			if _, err := sv.Save(ctx); err != nil {
				t.Fatal(err)
			}
			out.await(t, "ready")
			remove(t, sv.Logdir)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if _, err := os.Stat(filepath.Join(sv.Logdir, ConfigName)); err == nil || time.Now().After(deadline) {
					break
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			for _, name := range []string{"ckpt-2", ConfigName, "events.out.tfevents.*"} {
				if found, err := filepath.Glob(filepath.Join(sv.Logdir, name)); err != nil || len(found) != 1 {
					t.Errorf("%s: %v, %v", name, found, err)
				}
			}
		})
	}
}
