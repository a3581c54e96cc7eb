package system

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// start starts a shell script.
func start(t *testing.T, script string, lock *os.File, env ...string) Program {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), env...)
	p, err := OS{}.Start(cmd, lock)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := p.Outputs()
	t.Cleanup(func() {
		p.SignalGroup(SigKill)
		stdout.Close()
		stderr.Close()
	})
	if _, err := stdout.Read(make([]byte, 1)); err != nil { // it says that it has begun
		t.Fatal(err)
	}
	return p
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestLeftovers has processes that belong to a logdir by their environment, or by the
// lock that they have inherited, and others.
func TestLeftovers(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	lock, err := logdir.HoldGroup(dir)
	if err != nil {
		t.Fatal(err)
	}
	const script = "echo ready; exec sleep 300"
	marked := start(t, script, nil, GroupVariable+"="+dir)
	locked := start(t, script, lock)
	lock.Close()
	stranger := start(t, script, nil, GroupVariable+"="+other)
	want := []int{marked.PID(), locked.PID()}
	slices.Sort(want)
	got := OS{}.Leftovers(dir)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("Leftovers = %v, want %v", got, want)
	}
	OS{}.SignalAll(dir, append(got, stranger.PID()), SigTerm)
	for _, p := range []Program{marked, locked} {
		if code, sig := p.Wait(); sig != SigTerm {
			t.Errorf("Wait = %d, %v; want SIGTERM", code, sig)
		}
	}
	if got := (OS{}).Leftovers(dir); len(got) != 0 {
		t.Errorf("Leftovers = %v after their end", got)
	}
	if got := (OS{}).Leftovers(other); !slices.Equal(got, []int{stranger.PID()}) {
		t.Errorf("Leftovers of the other = %v, want %d", got, stranger.PID())
	}
}

// TestLookHoldsNothing: who looks for leftovers does not keep the lock that a start needs.
func TestLookHoldsNothing(t *testing.T) {
	dir := t.TempDir()
	if got := (OS{}).Leftovers(dir); len(got) != 0 {
		t.Errorf("Leftovers = %v", got)
	}
	lock, err := logdir.HoldGroup(dir)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
}

// TestNotAboveItself: a trainerd that is the program of another trainerd ends neither
// itself nor that.
func TestNotAboveItself(t *testing.T) {
	below := start(t, "echo ready; exec sleep 300", nil).PID()
	first := os.Getppid() // of those above: in a container, that may be trainerd
	for parentOf(first) > 0 {
		first = parentOf(first)
	}
	for pid, want := range map[int]bool{os.Getpid(): true, os.Getppid(): true, first: true, below: false} {
		if got := isAbove(pid); got != want {
			t.Errorf("isAbove(%d) = %v", pid, got)
		}
	}
	if got := parentOf(below); got != os.Getpid() {
		t.Errorf("parentOf(%d) = %d, want %d", below, got, os.Getpid())
	}
	if hasOpen(-1, "/") {
		t.Error("a process that there is not has a file open")
	}
	if got := parentOf(-1); got != 0 {
		t.Errorf("parentOf(-1) = %d", got)
	}
}

// hasEnded reports whether a process has ended, and may wait for its parent.
func hasEnded(pid int) bool { return dispositionNow(pid, syscall.SIGUSR1) == ended }

// TestReapOrphans: children that have ended are waited for, but for the program.
func TestReapOrphans(t *testing.T) {
	program, orphan := child(t, "exit"), child(t, "exit")
	alive := child(t, "exec sleep 300")
	await(t, "both have ended", func() bool { return hasEnded(program) && hasEnded(orphan) })
	ReapOrphans(program)
	for pid, want := range map[int]error{program: nil, alive: nil, orphan: syscall.ESRCH} {
		if err := syscall.Kill(pid, 0); err != want {
			t.Errorf("process %d: %v, want %v", pid, err, want)
		}
	}
}

// child starts a script that nobody waits for before the end of the test.
func child(t *testing.T, script string) (pid int) {
	t.Helper()
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", script}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill(); p.Wait() })
	return p.Pid
}

// TestSignals: Signal is for the program alone, and SignalGroup is an error where the system
// refuses it, but not once all have ended.
func TestSignals(t *testing.T) {
	p := start(t, "trap 'exit 4' TERM; sleep 300 & echo ready; wait", nil)
	if err := p.Signal(SigTerm); err != nil {
		t.Fatal(err)
	}
	if code, sig := p.Wait(); code != 4 || sig != 0 {
		t.Errorf("Wait = %d, %v; want 4", code, sig)
	}
	if p.GroupEnded() {
		t.Error("the sleep got the signal, too")
	}
	if err := p.Signal(SigTerm); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("Signal after the end: %v", err)
	}
	if err := p.SignalGroup(syscall.Signal(999)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("SignalGroup with no signal: %v", err)
	}
	if err := p.SignalGroup(SigKill); err != nil {
		t.Error(err)
	}
	await(t, "the group has ended", p.GroupEnded)
	if err := p.SignalGroup(SigKill); err != nil {
		t.Errorf("SignalGroup after the end: %v", err)
	}
}

// TestEndingSignals: a program that does not handle the signal to end gets it all the same.
func TestEndingSignals(t *testing.T) {
	for _, want := range []syscall.Signal{SigTerm, SigKill} {
		p := start(t, "echo ready; exec sleep 300", nil)
		if err := p.Signal(want); err != nil {
			t.Errorf("%v: %v", want, err)
			continue
		}
		if code, sig := p.Wait(); sig != want {
			t.Errorf("%v: Wait = %d, %v", want, code, sig)
		}
	}
}

// TestSignalHandlers: a signal that asks for something goes to the program, or to the
// nearest processes below it that handle it, and kills none that does not.
func TestSignalHandlers(t *testing.T) {
	const (
		handler = "trap 'exit 4' USR1; echo ready; while :; do sleep 0.01; done"
		below   = handler // the shell that starts it does not handle the signal
	)
	for name, tc := range map[string]struct {
		script string
		err    error
	}{
		"the program":             {handler, nil},
		"below it":                {"sh -c \"" + below + "\"; exit $?", nil},
		"below what is below it":  {"sh -c 'sh -c \"$SCRIPT\"; exit $?'; exit $?", nil},
		"none":                    {"echo ready; sleep 300; exit 5", ErrUnhandled},
		"one that ignores it":     {"trap '' USR1; echo ready; sleep 300; exit 5", ErrUnhandled},
		"not what is below those": {"trap 'exit 4' USR1; sh -c 'trap \"echo > \\\"$FILE\\\"\" USR1; echo ready; while :; do sleep 0.01; done' & while :; do sleep 0.01; done", nil},
	} {
		file := filepath.Join(t.TempDir(), "got")
		p := start(t, tc.script, nil, "SCRIPT="+below, "FILE="+file)
		if err := p.Signal(syscall.SIGUSR1); !errors.Is(err, tc.err) {
			t.Errorf("%s: %v, want %v", name, err, tc.err)
		}
		if tc.err != nil {
			p.SignalGroup(SigKill)
		}
		if code, sig := p.Wait(); tc.err == nil && (code != 4 || sig != 0) || tc.err != nil && sig != SigKill {
			t.Errorf("%s: Wait = %d, %v", name, code, sig)
		}
		p.SignalGroup(SigKill)
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: what the handler has started got the signal", name)
		}
		if err := p.Signal(syscall.SIGUSR1); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%s: Signal after the end: %v", name, err)
		}
	}
}

// TestDispositions has processes that have ended, and one that blocks a signal.
func TestDispositions(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the process has ended", func() bool { return hasEnded(cmd.Process.Pid) })
	if err := signalHandlers(cmd.Process, syscall.SIGUSR1); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal to one that nobody has waited for: %v", err)
	}
	cmd.Wait()
	if got := dispositionOf(cmd.Process.Pid, syscall.SIGUSR1); got != ended {
		t.Errorf("disposition of one that is gone: %v", got)
	}
	if exec.Command("env", "--block-signal=USR1", "true").Run() != nil {
		t.Skip("env cannot block signals here")
	}
	blocking := exec.Command("env", "--block-signal=USR1", "sleep", "300")
	if err := blocking.Start(); err != nil {
		t.Fatal(err)
	}
	defer blocking.Wait()
	defer blocking.Process.Kill()
	await(t, "the signal is blocked", func() bool { return dispositionNow(blocking.Process.Pid, syscall.SIGUSR1) == blocked })
	if got := dispositionOf(blocking.Process.Pid, syscall.SIGUSR1); got != handled {
		t.Errorf("disposition of one that blocks the signal: %v", got)
	}
}

// TestNoSuchProgram: a start that fails leaves no open files.
func TestNoSuchProgram(t *testing.T) {
	before := descriptors(t)
	if _, err := (OS{}).Start(exec.Command("/no/such/program"), nil); err == nil {
		t.Fatal("no error")
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d open files, %d before", after, before)
	}
}

// TestNoDescriptorsLeft has a process that may open no more files, or two: a start fails,
// and leaves none open.
func TestNoDescriptorsLeft(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	free := func() uint64 { // the number of the second file that is opened next
		a, errA := os.Open("/")
		b, errB := os.Open("/")
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		defer b.Close()
		return uint64(max(a.Fd(), b.Fd()))
	}
	before := descriptors(t)
	for _, most := range []uint64{3, free() + 1} {
		few := limit
		few.Cur = most
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Skip(err)
		}
		_, startErr := OS{}.Start(exec.Command("/bin/true"), nil)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(startErr, syscall.EMFILE) {
			t.Errorf("with %d files: %v", most, startErr)
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d files are open, %d before", after, before)
	}
}

// descriptors counts the open files, without those that the first pipe of a process opens and keeps.
// Some of an earlier test may be closed by now: only more than before are a leak.
func descriptors(t *testing.T) int {
	t.Helper()
	read, write, err := os.Pipe()
	if err := errors.Join(err, read.Close(), write.Close()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestListen: a socket has a folder of its own, which goes with it, and where none can be
// made, none is left.
func TestListen(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	defer func(temps []string) { sharedTemps = temps }(sharedTemps)
	ln, err := OS{}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(strings.TrimSuffix(ln.Addr().String(), "/"+socketName)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", info.Mode(), err)
	}
	before := descriptors(t)
	if isDead(ln.Addr().String()) {
		t.Error("nobody listens")
	}
	if after := descriptors(t); after > before {
		t.Errorf("after a look at it, %d files are open, %d before", after, before)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close again: %v", err)
	}
	long := temp + "/" + strings.Repeat("x", 100)
	if err := os.Mkdir(long, 0o777); err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	for _, dir := range []string{long, temp + "/none"} {
		t.Setenv("TMPDIR", dir)
		sharedTemps = []string{temp + "/neither", shared} // as in a container whose root is read-only
		if ln, err := (OS{}).Listen(); err != nil || !strings.HasPrefix(ln.Addr().String(), shared) {
			t.Errorf("in %s: %v", dir, err)
		} else if err := ln.Close(); err != nil {
			t.Error(err)
		}
		sharedTemps = []string{temp + "/neither"}
		if _, err := (OS{}).Listen(); err == nil || !strings.Contains(err.Error(), "making the socket for reports") || !strings.Contains(err.Error(), "set TMPDIR") {
			t.Errorf("in %s: %v", dir, err)
		}
	}
	for dir, want := range map[string]int{temp: 1, long: 0, shared: 0} { // the long one is in the other
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("left in %s: %v, %v", dir, entries, err)
		}
	}
}
