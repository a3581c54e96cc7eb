//go:build unix

package system

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Signals that a group of processes gets.
const (
	SigTerm = syscall.SIGTERM
	SigKill = syscall.SIGKILL
	SigStop = syscall.SIGSTOP
	SigCont = syscall.SIGCONT
)

// ownGroup makes a command begin a process group, so that everything that it starts can be ended
// with it, and Ctrl-C does not reach it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signalGroup sends a signal to the group that the process pid leads.
func signalGroup(pid int, sig syscall.Signal) error {
	err := syscall.Kill(-pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil // all have ended
	}
	return err
}

// groupEnded reports whether the group of a process that was waited for has no
// other process either.
func groupEnded(pid int) bool {
	return errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH)
}

// signalOf returns the signal that has ended a process, 0 for none.
func signalOf(s *os.ProcessState) syscall.Signal {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal()
	}
	return 0
}
