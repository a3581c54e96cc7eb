package main

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOn starts cmd on the first n of the CPUs that this process may use, or
// on all if n is 0.
func startOn(n int, cmd *exec.Cmd) error {
	if n == 0 {
		return cmd.Start()
	}
	started := make(chan error)
	go func() {
		// A child inherits the CPUs of the thread that starts it. The thread
		// stays locked, so that it ends here and nothing else runs on it.
		runtime.LockOSThread()
		started <- startPinned(n, cmd)
	}()
	return <-started
}

func startPinned(n int, cmd *exec.Cmd) error {
	var all, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	if n > all.Count() {
		return fmt.Errorf("cpus = %d: this machine has %d", n, all.Count())
	}
	for cpu := 0; some.Count() < n; cpu++ {
		if all.IsSet(cpu) {
			some.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		return err
	}
	return cmd.Start()
}
