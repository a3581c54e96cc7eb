//go:build !unix

package system

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Signals that the program gets. This system has only the last one.
const (
	SigStop = syscall.Signal(0)
	SigCont = syscall.Signal(0)
	SigTerm = syscall.SIGKILL
	SigKill = syscall.SIGKILL
)

var errNoSignals = errors.New("this system cannot pause a program; stop it instead")

func ownGroup(*exec.Cmd) {}

// signalGroup ends the process pid; this system has no groups.
func signalGroup(pid int, sig syscall.Signal) error {
	if sig != SigKill {
		return errNoSignals
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil // it has ended
	}
	return p.Kill()
}

func groupEnded(int) bool { return true }

func signalOf(*os.ProcessState) syscall.Signal { return 0 }
