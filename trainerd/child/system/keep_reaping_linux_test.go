package system

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestKeepReaping has a process that starts others without waiting for them, as the first of a
// container has orphans: none stays as a zombie.
func TestKeepReaping(t *testing.T) {
	const role = "TRAINERD_TEST_REAPER"
	if os.Getenv(role) != "" {
		reapOneByOne(t)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestKeepReaping$")
	cmd.Env = append(os.Environ(), role+"=yes")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func reapOneByOne(t *testing.T) {
	end := keepReaping(reapAll)
	awaitOrphans(t)
	end()
	program := exec.Command("sh", "-c", "read x; exit 3")
	input, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer keepReaping(func() { ReapOrphans(program.Process.Pid) })()
	awaitOrphans(t)
	input.Close()
	awaitOrphans(t) // the program may have ended before them
	if err := program.Wait(); program.ProcessState.ExitCode() != 3 {
		t.Errorf("the program has ended with %v, want exit status 3", err)
	}
}

func awaitOrphans(t *testing.T) {
	t.Helper()
	for range 3 {
		orphan, err := os.StartProcess("/proc/self/exe", []string{"orphan", "-test.run", "^$"}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if err := syscall.Kill(orphan.Pid, 0); errors.Is(err, syscall.ESRCH) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("a process that has ended is still there")
			}
		}
	}
}
