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

// TestCheckByName looks where files cannot be locked: who has died is none that writes, and the
// file says after the look what it said before.
func TestCheckByName(t *testing.T) {
	me, err := thisProcess()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		holder Holder
		locked bool
	}{
		{"alive", Holder{Host: me.Host, PID: os.Getppid(), Boot: me.Boot}, true},
		{"dead", Holder{Host: me.Host, PID: 1 << 22}, false},
		{"elsewhere", Holder{Host: "elsewhere", PID: 1 << 22}, true},
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, LockFile)
		if err := os.WriteFile(name, []byte(c.name), 0o666); err != nil {
			t.Fatal(err)
		}
		_, locked := errors.AsType[*LockedError](checkByName(dir, name, c.holder))
		if text, err := os.ReadFile(name); locked != c.locked || err != nil || string(text) != c.name {
			t.Errorf("%s: locked %v, the file says %q, %v", c.name, locked, text, err)
		}
	}
	if err := checkByName(t.TempDir(), "nowhere", me); err != nil {
		t.Error("a file that was removed meanwhile: ", err)
	}
	if err := checkByName(t.TempDir(), t.TempDir(), me); err == nil {
		t.Error("a folder in its place is no lock")
	}
}
