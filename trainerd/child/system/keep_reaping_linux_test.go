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
	end := keepReaping()
	defer end()
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

// TestKeepReapingElsewhere has a process that is not the first of a container: its children are its own.
func TestKeepReapingElsewhere(t *testing.T) {
	end := KeepReaping()
	defer end()
	for range 3 {
		if err := exec.Command("/proc/self/exe", "-test.run", "^$").Run(); err != nil {
			t.Error(err)
		}
	}
}
