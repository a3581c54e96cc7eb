package system

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDiesWithParent has a process that starts a program, as a trainerd does, and is killed: the
// program ends with it, though it handles no signal and nobody looks for it.
func TestDiesWithParent(t *testing.T) {
	const variable = "SYSTEM_TEST_PARENT"
	if os.Getenv(variable) != "" {
		p, err := OS{}.Start(exec.Command("sleep", "300"), nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("started", p.PID())
		time.Sleep(5 * time.Minute) // it is killed
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiesWithParent$")
	cmd.Env = append(os.Environ(), variable+"=yes")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(stdout); pid == 0 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "started "); ok {
			pid, _ = strconv.Atoi(text)
		}
	}
	running := pid > 0 && !hasEnded(pid)
	cmd.Process.Kill()
	cmd.Wait()
	if !running {
		t.Fatalf("program %d does not run", pid)
	}
	t.Cleanup(func() {
		if !hasEnded(pid) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	await(t, "the program has ended", func() bool { return hasEnded(pid) })
}
