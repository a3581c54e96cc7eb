package system

import "syscall"

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
