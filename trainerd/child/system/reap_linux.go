package system

import (
	"os"
	"os/signal"
	"syscall"
)

// ReapOrphans waits for all ended children of this process except the program,
// which has its own goroutine. It is safe only if the process has no other
// children than the program and orphans.
func ReapOrphans(program int) {
	for _, pid := range processes() {
		if pid != program {
			syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // which does nothing with those that are no such children
		}
	}
}

// KeepReaping makes this process, if it is the first of a container, wait for orphans until end is
// called. It is for a process that starts none itself: processes that an `exec` in the container
// leaves, such as a probe that took too long, would otherwise remain zombies for as long as the
// training lasts, until the container may have no more processes.
func KeepReaping() (end func()) {
	if os.Getpid() != 1 {
		return func() {}
	}
	return keepReaping(reapAll)
}

// KeepReapingExcept is KeepReaping for a process that has started one program and waits for that
// elsewhere.
func KeepReapingExcept(program int) (end func()) {
	if os.Getpid() != 1 {
		return func() {}
	}
	return keepReaping(func() { ReapOrphans(program) })
}

func keepReaping(reap func()) (end func()) {
	children, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		defer close(ended)
		for range children {
			reap()
		}
	}()
	reap() // those that ended before
	return func() {
		signal.Stop(children)
		close(children)
		<-ended
	}
}

// reapAll waits for all children that have ended.
func reapAll() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return
		}
	}
}
