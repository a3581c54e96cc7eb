//go:build unix && !linux

package system

import "syscall"

// dieWithParent does nothing: this system does not offer it.
func dieWithParent(*syscall.SysProcAttr) {}
