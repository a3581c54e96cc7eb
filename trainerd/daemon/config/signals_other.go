//go:build !unix

package config

import "syscall"

// saveSignals is empty: this system sends no signals to programs.
var saveSignals map[string]syscall.Signal
