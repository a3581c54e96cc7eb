//go:build !unix

package config

import "syscall"

// This system does not have these signals.
const (
	userSignal1 = syscall.Signal(0)
	userSignal2 = syscall.Signal(0)
)
