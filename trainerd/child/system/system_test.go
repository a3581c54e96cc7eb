//go:build unix

package system

import (
	"io"
	"os/exec"
	"syscall"
	"testing"
)

// TestGroupOutlivesItsLeader starts a program that ends while what it has started
// continues in its group: it is there until the group is told to end.
func TestGroupOutlivesItsLeader(t *testing.T) {
	p, err := OS{}.Start(exec.Command("/bin/sh", "-c", "sleep 300 >/dev/null 2>&1 & echo ready; exit 3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := p.Outputs()
	defer stdout.Close()
	defer stderr.Close()
	if text, err := io.ReadAll(stdout); string(text) != "ready\n" || err != nil {
		t.Errorf("standard output is %q, %v", text, err)
	}
	if code, sig := p.Wait(); code != 3 || sig != 0 {
		t.Errorf("Wait = %d, %v; want 3", code, sig)
	}
	if p.GroupEnded() {
		t.Error("the group has ended with its leader")
	}
	if err := p.SignalGroup(SigKill); err != nil {
		t.Errorf("SignalGroup: %v", err)
	}
}

func TestWaitNamesTheSignal(t *testing.T) {
	p, err := OS{}.Start(exec.Command("/bin/sh", "-c", "kill -KILL $$"), nil)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := p.Outputs()
	defer stdout.Close()
	defer stderr.Close()
	if code, sig := p.Wait(); code != -1 || sig != syscall.SIGKILL {
		t.Errorf("Wait = %d, %v; want -1, SIGKILL", code, sig)
	}
	if !p.GroupEnded() {
		t.Error("the group is alive")
	}
}
