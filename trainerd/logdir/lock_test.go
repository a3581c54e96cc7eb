package logdir

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
)

const lockHelperEnv = "TRAINERD_LOCK_HELPER"

// TestLockHelper is not a test: it is another process that holds a logdir until
// it is killed.
func TestLockHelper(t *testing.T) {
	dir := os.Getenv(lockHelperEnv)
	if dir == "" {
		t.Skip("only for TestLockOfKilledProcess")
	}
	log, _ := sessiontest.NewLog()
	lock, err := Acquire(dir, log)
	sessiontest.MustNoErr(t, err)
	defer lock.Release() // keeps the file from being collected, and so closed
	os.Stdout.WriteString("locked\n")
	time.Sleep(time.Hour) // until killed; without a timer the runtime would call it a deadlock
}

func TestLockOfKilledProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockHelper$")
	cmd.Env = append(os.Environ(), lockHelperEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	sessiontest.MustNoErr(t, err)
	sessiontest.MustNoErr(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("helper says %q, %v", line, err)
	}

	log, lines := sessiontest.NewLog()
	_, err = Acquire(dir, log)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.Holder.PID != cmd.Process.Pid {
		t.Fatalf("lockDir = %v; want a LockedError of process %d", err, cmd.Process.Pid)
	}
	if text := err.Error(); !strings.Contains(text, dir) || !strings.Contains(text, "stop it first") {
		t.Errorf("error %q lacks the logdir or what to do", text)
	}
	sessiontest.MustNoErr(t, cmd.Process.Kill())
	cmd.Wait()
	lock, err := Acquire(dir, log)
	sessiontest.MustNoErr(t, err)
	sessiontest.WantLog(t, lines, "taking over the logdir")
	sessiontest.MustNoErr(t, lock.Release())
}

func TestLockIsReleased(t *testing.T) {
	dir := t.TempDir()
	log, lines := sessiontest.NewLog()
	for range 3 {
		lock, err := Acquire(dir, log)
		sessiontest.MustNoErr(t, err)
		sessiontest.MustNoErr(t, lock.Release())
		if info, err := os.Stat(filepath.Join(dir, LockFile)); err != nil || info.Size() > 0 {
			t.Errorf("the lock file after a release: %v, %v", info, err)
		}
	}
	if lines.String() != "" {
		t.Errorf("log after clean releases: %s", lines)
	}
}

func TestLockFileIsJunk(t *testing.T) {
	dir := t.TempDir()
	sessiontest.MustNoErr(t, os.WriteFile(filepath.Join(dir, LockFile), []byte(strings.Repeat("junk", 5000)), 0o666))
	log, _ := sessiontest.NewLog()
	lock, err := Acquire(dir, log)
	sessiontest.MustNoErr(t, err)
	b, err := os.ReadFile(filepath.Join(dir, LockFile))
	sessiontest.MustNoErr(t, err)
	var h Holder
	if err := json.Unmarshal(b, &h); err != nil || h.PID != os.Getpid() {
		t.Errorf("lock file %q, %v; want this process", b, err)
	}
	sessiontest.MustNoErr(t, lock.Release())
}

// Without flock the file itself is the lock.
func TestLockByFile(t *testing.T) {
	me, err := thisProcess()
	sessiontest.MustNoErr(t, err)
	deadPID := 1 << 22 // above the largest that Linux gives
	tests := []struct {
		name   string
		holder *Holder
		taken  bool
	}{
		{"free", nil, false},
		{"holder lives", &Holder{Host: me.Host, PID: os.Getpid(), Start: time.Now()}, true},
		{"holder lives since the machine was started", &Holder{Host: me.Host, PID: os.Getppid(), Boot: me.Boot}, true},
		{"another process has its number after a reboot", &Holder{Host: me.Host, PID: os.Getppid(), Boot: "an earlier one"}, me.Boot == ""},
		{"holder died", &Holder{Host: me.Host, PID: deadPID}, false},
		{"holder on another host", &Holder{Host: "elsewhere", PID: deadPID}, true},
		{"holder unknown", &Holder{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), LockFile)
			if tt.holder != nil {
				b, err := json.Marshal(tt.holder)
				sessiontest.MustNoErr(t, err)
				sessiontest.MustNoErr(t, os.WriteFile(name, b, 0o666))
			}
			lock, holder, err := lockByFile(name)
			sessiontest.MustNoErr(t, err)
			if (lock == nil) != tt.taken {
				t.Fatalf("taken: %v, holder %v; want %v", lock == nil, holder, tt.taken)
			}
			if lock == nil {
				return
			}
			if tt.holder != nil && holder != *tt.holder {
				t.Errorf("taken over from %v, want %v", holder, *tt.holder)
			}
			sessiontest.MustNoErr(t, lock.Release())
			if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("lock file after the release: %v", err)
			}
		})
	}
}

// Where the name in the file is the lock, a process that died with its host has it: the message
// says which file to remove.
func TestLockedByName(t *testing.T) {
	for _, byName := range []bool{true, false} {
		e := &LockedError{Logdir: "run", File: "run/trainerd.lock", Holder: Holder{Host: "node7", PID: 7}, ByName: byName}
		if got := strings.HasSuffix(e.Error(), "if the process has died, remove run/trainerd.lock"); got != byName {
			t.Errorf("by name %v: %v", byName, e)
		}
	}
}

// On a file system that locks out the processes of one host only, a second host
// gets the lock too. The first one notices, and leaves the lock to it.
func TestLockIsTakenByAnotherHost(t *testing.T) {
	for name, pid := range map[string]int{"flock": os.Getpid(), "by the file": os.Getpid(), "in containers": 1} {
		remove := name == "by the file"
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log, _ := sessiontest.NewLog()
			lock, err := Acquire(dir, log)
			sessiontest.MustNoErr(t, err)
			lock.remove, lock.holder.PID = remove, pid
			sessiontest.MustNoErr(t, lock.write(lock.holder))
			sessiontest.MustNoErr(t, lock.Held())
			file := filepath.Join(dir, LockFile)
			other := []byte(`{"host":"elsewhere","pid":` + strconv.Itoa(pid) + `,"start":"2026-01-02T03:04:05Z"}` + "\n")
			sessiontest.MustNoErr(t, os.WriteFile(file, other, 0o666))
			var locked *LockedError
			if err := lock.Held(); !errors.As(err, &locked) || locked.Holder.Host != "elsewhere" {
				t.Errorf("Held = %v; want that the other host has it", err)
			}
			sessiontest.MustNoErr(t, lock.Release())
			if left, err := os.ReadFile(file); err != nil || !bytes.Equal(left, other) {
				t.Errorf("the lock file has %q, %v", left, err)
			}
		})
	}
}

// A container that was started again has the host and the number of the process
// that left the lock.
func TestLockOfTheSameNumber(t *testing.T) {
	name := filepath.Join(t.TempDir(), LockFile)
	me, err := thisProcess()
	sessiontest.MustNoErr(t, err)
	for _, c := range []struct {
		start time.Time
		dead  bool
	}{{started.Add(-time.Minute), true}, {time.Now(), false}} {
		me.Start = c.start.UTC().Truncate(time.Millisecond)
		text, err := json.Marshal(me)
		sessiontest.MustNoErr(t, err)
		sessiontest.MustNoErr(t, os.WriteFile(name, text, 0o666))
		lock, _, err := lockByFile(name)
		sessiontest.MustNoErr(t, err)
		if got := lock != nil; got != c.dead {
			t.Errorf("a lock of %v: taken over: %v", c.start, got)
		}
		if lock != nil {
			sessiontest.MustNoErr(t, lock.Release())
		}
	}
}

// A logdir is removed while the lock is being checked, its files first: it is made again,
// whatever was gone at each moment.
func TestLogdirIsRemovedDuringCheck(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logdir")
	lock := newLock(t, dir)
	for range 100 {
		removed := make(chan struct{})
		go func() {
			defer close(removed)
			for os.RemoveAll(dir) != nil { // the lock file was made again in it
			}
		}()
		for before := lock.Relocked(); lock.Relocked() == before; {
			if err := lock.Held(); err != nil {
				<-removed
				t.Fatal(err)
			}
		}
		<-removed
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}

// A lock that is made again, because its file or the logdir was deleted, has the holder
// that it had: workers know their chief by that.
func TestHolderStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	lock := newLock(t, dir)
	defer lock.Release()
	before := Named(dir)
	time.Sleep(2 * time.Millisecond) // its time is in milliseconds
	for _, name := range []string{filepath.Join(dir, LockFile), dir} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		if err := lock.Held(); err != nil {
			t.Fatal(err)
		}
		if got := Named(dir); got != before {
			t.Errorf("without %s the holder is %v, was %v", name, got, before)
		}
	}
}

// newLock makes a folder and locks it.
func newLock(t *testing.T, dir string) *Lock {
	t.Helper()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	lock, err := Acquire(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}
