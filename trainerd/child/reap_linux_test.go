package child

import (
	"os/exec"
	"testing"

	"github.com/trainerd/trainerd/trainerd/child/internal/childtest"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// numbered is a program whose number is known.
type numbered struct {
	system.Program
	pid int
}

func (n numbered) PID() int { return n.pid }

// TestReapsNotTheProgram has a program that has ended, and nobody has waited for it yet: a scan
// for orphans leaves its exit code to the one who waits.
func TestReapsNotTheProgram(t *testing.T) {
	before := reaps
	reaps = true
	t.Cleanup(func() { reaps = before })
	cmd := exec.Command("/bin/sh", "-c", "exit 7")
	childtest.Must(t, cmd.Start())
	await(t, "it has ended", func() bool { return isZombie(cmd.Process.Pid) })
	r := &run{attempt: attempt{process: &process{program: numbered{pid: cmd.Process.Pid}}}}
	r.reapOrphans()
	if err := cmd.Wait(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("Wait = %v, %v", cmd.ProcessState, err)
	}
}
