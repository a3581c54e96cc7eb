//go:build !unix

package child

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Signals that the program gets. This system has the last one alone.
const (
	sigStop = syscall.Signal(0)
	sigCont = syscall.Signal(0)
	sigTerm = syscall.SIGKILL
	sigKill = syscall.SIGKILL
)

func ownGroup(*exec.Cmd) {}

// signalGroup ends the process pid; this system has no groups.
func signalGroup(pid int, sig syscall.Signal) error {
	if sig != sigKill {
		return errors.ErrUnsupported
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil // it has ended
	}
	return p.Kill()
}

func groupEnded(int) bool { return true }

func signalOf(*os.ProcessState) (syscall.Signal, bool) { return 0, false }

const groupPoll = 20 * time.Millisecond
