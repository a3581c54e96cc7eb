package system

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// reaper is the environment variable that has a test be the process that reaps.
const reaper = "TRAINERD_TEST_REAPER"

// TestKeepReaping has a process that starts others without waiting for them, as the first of a
// container has orphans: none stays as a zombie.
func TestKeepReaping(t *testing.T) {
	if os.Getenv(reaper) != "" {
		reapAsLongAsKept(t, func() (end func()) { return keepReaping(reapAll) })
		return
	}
	if out, err := again(t).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestKeepReapingExcept has one such process that something else waits for, also where it ends before others.
func TestKeepReapingExcept(t *testing.T) {
	if os.Getenv(reaper) != "" {
		reapAllButOne(t)
		return
	}
	if out, err := again(t).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func reapAllButOne(t *testing.T) {
	program := exec.Command("sh", "-c", "read x; exit 3")
	input, err := program.StdinPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer keepReaping(func() { ReapOrphans(program.Process.Pid) })()
	awaitOrphans(t)
	input.Close()
	awaitOrphans(t)
	if err := program.Wait(); program.ProcessState.ExitCode() != 3 {
		t.Errorf("the program has ended with %v, want exit status 3", err)
	}
}

func awaitOrphans(t *testing.T) {
	t.Helper()
	for range 3 {
		p := orphan(t)
		await(t, "an orphan is gone", func() bool { return isGone(p) })
	}
}

// TestKeepReapingAsFirst is TestKeepReaping in a process that is the first of a container.
func TestKeepReapingAsFirst(t *testing.T) {
	if os.Getenv(reaper) != "" {
		reapAsLongAsKept(t, KeepReaping)
		return
	}
	cmd := again(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		t.Skip(err) // as where a user may make no container
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// again is a command that runs the test in a process of its own.
func again(t *testing.T) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), reaper+"=yes")
	return cmd
}

// orphan starts a process that ends at once, in a group of its own.
func orphan(t *testing.T) *os.Process {
	t.Helper()
	p, err := os.StartProcess("/proc/self/exe", []string{"orphan", "-test.run", "^$"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func isGone(p *os.Process) bool { return errors.Is(syscall.Kill(p.Pid, 0), syscall.ESRCH) }

// isZombie reports whether a child has ended, and does not wait for it. The processes in /proc may be those of
// another container.
func isZombie(p *os.Process) bool {
	const all, exited, noWait = 1, 4, 0x01000000 // waitid's P_PID, WEXITED and WNOWAIT
	var info [128]byte
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, all, uintptr(p.Pid), uintptr(unsafe.Pointer(&info)), exited|noWait|syscall.WNOHANG, 0, 0)
	return errno == 0 && !bytes.Equal(info[:4], make([]byte, 4))
}

func reapAsLongAsKept(t *testing.T, keep func() (end func())) {
	alive := exec.Command("cat")
	in, err := alive.StdinPipe()
	if err == nil {
		err = alive.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	before := []*os.Process{orphan(t), orphan(t)}
	for _, p := range before {
		await(t, "an orphan has ended", func() bool { return isZombie(p) })
	}
	end := keep()
	for _, p := range before {
		if !isGone(p) {
			t.Error("a process that had ended before is still there")
		}
	}
	awaitOrphans(t)
	end()
	if err := errors.Join(in.Close(), alive.Wait()); err != nil {
		t.Error(err)
	}
	if _, err := orphan(t).Wait(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// TestKeepReapingElsewhere has a process that is not the first of a container: its children are its own.
func TestKeepReapingElsewhere(t *testing.T) {
	end := KeepReaping()
	p := orphan(t)
	await(t, "the child has ended", func() bool { return isZombie(p) || isGone(p) })
	end()
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}
