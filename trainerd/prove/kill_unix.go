//go:build unix

package prove

import "syscall"

// killGroup kills the group of processes that a program leads.
func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }
