//go:build unix

package daemon

import "syscall"

const (
	userSignal1 = syscall.SIGUSR1
	userSignal2 = syscall.SIGUSR2
)
