//go:build unix

package measure

import (
	"syscall"
	"time"
)

// CPUTime returns the CPU time that this process has taken so far.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
