package logdir

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckLogdir(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, LockFile)
	free := func(when string) {
		t.Helper()
		if err := Check(dir); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	free("before the first run")
	if _, err := os.Stat(name); err == nil {
		t.Error("looking has made a lock file")
	}

	lock, err := Acquire(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if err := Check(dir); !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() {
		t.Errorf("during a run: %v", err)
	}
	me := lock.holder
	me.PID = 1 // as the first process of a container
	if err := lock.write(me); err != nil {
		t.Fatal(err)
	}
	if err := Check(dir); !errors.As(err, &locked) || locked.Holder != me {
		t.Errorf("during a run in a container: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	free("after a run")

	const dead = `{"host":"elsewhere","pid":1,"start":"2026-01-02T03:04:05Z"}`
	if err := os.WriteFile(name, []byte(dead), 0o666); err != nil {
		t.Fatal(err)
	}
	free("after a run that was killed")
	if left, err := os.ReadFile(name); err != nil || string(left) != dead {
		t.Errorf("looking has changed the lock file to %q, %v", left, err)
	}
}
