//go:build unix

package config

import "syscall"

// saveSignals are those that may make a program save.
var saveSignals = map[string]syscall.Signal{"SIGUSR1": syscall.SIGUSR1, "SIGUSR2": syscall.SIGUSR2, "SIGHUP": syscall.SIGHUP}
