package main

import (
	"bufio"
	"fmt"
	"os"
)

// peakMemory returns the largest resident memory of this process, in MiB. What
// rusage reports would include that of the process which started this one.
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
