package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// TestLeftoversEndAtTheStart has a worker in a session of its own, which outlived
// a trainerd that was killed, and a process with the same logdir in its
// environment that is nobody's worker.
func TestLeftoversEndAtTheStart(t *testing.T) {
	sv, out := supervise(t, "steps 1 2")
	begin := func(mark string) *exec.Cmd {
		c := exec.Command("sleep", "300")
		c.Env = append(os.Environ(), mark+"="+sv.Logdir)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c
	}
	worker, other := begin(system.GroupVariable), begin("TRAINERD_LOGDIR")
	if _, err := sv.Run(t.Context()); err != nil {
		t.Fatalf("Run: %v; output %q", err, out)
	}
	if !isZombie(worker.Process.Pid) {
		t.Error("the worker is still there")
	}
	if isZombie(other.Process.Pid) {
		t.Error("another's process was ended")
	}
}

// TestLeftRunning has a program that trains in the background, and one whose last
// process ends just after it.
func TestLeftRunning(t *testing.T) {
	for script, want := range map[string]int{
		`setsid sh -c ': >$TRAINERD_LOGDIR/up; exec sleep 300' >/dev/null 2>&1 & while [ ! -e $TRAINERD_LOGDIR/up ]; do sleep 0.01; done; echo step=1`: 1,
		`setsid sleep 0.1 >/dev/null 2>&1 & echo step=1`: 0,
	} {
		sv, out := supervise(t, "")
		sv.Grace = time.Second / 2
		sv.Command = []string{"/bin/sh", "-c", script}
		exit, err := sv.Run(t.Context())
		for _, pid := range exit.Left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil || exit.Cause != Completed || len(exit.Left) != want {
			t.Errorf("%s: Run = %+v, %v; output %q", script, exit, err, out)
		}
	}
}

// TestLastSaveInBackground has a program that ends while a process of its own still writes
// its last checkpoint.
func TestLastSaveInBackground(t *testing.T) {
	sv, out := supervise(t, "")
	sv.Command = []string{"/bin/sh", "-c", `(sleep 0.2; echo saved >"$TRAINERD_LOGDIR/ckpt-3") >/dev/null 2>&1 & echo step=3`}
	if exit, err := sv.Run(t.Context()); err != nil || exit.Cause != Completed || !slices.Contains(marks(t, sv.Logdir), "CHECKPOINT@3") {
		t.Errorf("Run = %+v, %v; marks %v, output %q", exit, err, marks(t, sv.Logdir), out)
	}
}

// TestLeftoversEndWithTheProgram has a launcher that is killed, and its worker in
// a session of its own, which may have closed what it has inherited, as Python's are.
func TestLeftoversEndWithTheProgram(t *testing.T) {
	for _, closes := range []string{"", "3>&-"} {
		sv, out := supervise(t, "")
		sv.Command = []string{"/bin/sh", "-c", `
if [ -e "$TRAINERD_LOGDIR/worker" ]; then
	grep -q ') [RSD] ' /proc/$(cat "$TRAINERD_LOGDIR/worker")/stat 2>/dev/null && echo two writers; echo step=2; exit 0
fi
setsid sh -c 'echo $$ >"$TRAINERD_LOGDIR/w"; mv "$TRAINERD_LOGDIR/w" "$TRAINERD_LOGDIR/worker"; exec sleep 300' >/dev/null 2>&1 ` + closes + ` &
while [ ! -e "$TRAINERD_LOGDIR/worker" ]; do sleep 0.01; done
kill -9 $$`}
		if exit, err := sv.Run(t.Context()); err != nil || exit.Attempt != 2 {
			t.Fatalf("Run = %+v, %v; output %q", exit, err, out)
		}
		if strings.Contains(out.String(), "two writers") {
			t.Error("the worker of the first start wrote on during the second")
		}
		var pid int
		if _, err := fmt.Sscan(childtest.Read(t, filepath.Join(sv.Logdir, "worker")), &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) && !isZombie(pid) {
			t.Errorf("the worker is still there: %v", err)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestAwaitGroup has the lock in the hands of a process that cannot be found, as one
// that is ending, which lets go of it; and of one that does not.
func TestAwaitGroup(t *testing.T) {
	dir := t.TempDir()
	held, err := logdir.HoldGroup(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := awaitGroup(t.Context(), dir, 0); !errors.As(err, new(*logdir.GroupError)) {
		t.Errorf("it stays held: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		lock, err := awaitGroup(t.Context(), dir, patience)
		if lock != nil {
			lock.Close()
		}
		got <- err
	}()
	held.Close()
	if err := <-got; err != nil {
		t.Errorf("it is let go: %v", err)
	}
}

// TestLockOfOneThatEnds has a program that is given no time to end. The system takes some
// to end it all the same.
func TestLockOfOneThatEnds(t *testing.T) {
	sv, _ := supervise(t, "")
	sv.Grace = -1
	dir := t.TempDir()
	held, err := logdir.HoldGroup(dir)
	childtest.Must(t, err)
	time.AfterFunc(50*time.Millisecond, func() { held.Close() })
	r := &run{Supervisor: sv, log: discard, logdir: dir, groupDir: dir}
	lock, err := r.holdGroup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}
