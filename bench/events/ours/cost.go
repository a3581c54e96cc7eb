package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A stopwatch measures wall clock and CPU time of this process.
type stopwatch struct {
	at  time.Time
	cpu time.Duration
}

func startWatch() (stopwatch, error) {
	cpu, err := cpuTime()
	return stopwatch{time.Now(), cpu}, err
}

// result returns what was spent since the start.
func (w stopwatch) result(work string) (result, error) {
	elapsed := time.Since(w.at)
	cpu, err := cpuTime()
	return result{
		Work: work, Seconds: elapsed.Seconds(), CPUSeconds: (cpu - w.cpu).Seconds(), Metrics: make(map[string]float64),
	}, err
}

func cpuTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// peakMemory returns the largest resident memory of this process, in MiB. What
// rusage tells would include that of the process which started this one.
func peakMemory() (float64, error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kib float64
		if _, err := fmt.Sscanf(lines.Text(), "VmHWM: %f kB", &kib); err == nil {
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("%s: no VmHWM", f.Name())
}
