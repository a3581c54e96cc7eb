//go:build !linux

package system

import (
	"os"
	"syscall"
)

// signalHandlers sends a signal to a program. This system does not say which processes
// handle it.
func signalHandlers(p *os.Process, sig syscall.Signal) error { return p.Signal(sig) }

// signalOthers sends a signal to the group that the process leader leads. This system does not
// say which processes that are.
func signalOthers(leader int, sig syscall.Signal) error { return signalGroup(leader, sig) }
