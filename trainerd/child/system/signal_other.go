//go:build !linux

package system

import (
	"os"
	"syscall"
)

// signalHandlers sends a signal to a program. This system does not say which processes
// handle it.
func signalHandlers(p *os.Process, sig syscall.Signal) error { return p.Signal(sig) }

// signalOthers sends a signal to the group of the process leader. This system does not say which
// processes belong to it.
func signalOthers(leader int, sig syscall.Signal) error { return signalGroup(leader, sig) }
