//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakMiB returns the largest resident memory of an ended process.
func peakMiB(state *os.ProcessState) float64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	unit := 1024.0
	if runtime.GOOS == "darwin" {
		unit = 1 // bytes there, KiB elsewhere
	}
	return float64(usage.Maxrss) * unit / (1 << 20)
}
