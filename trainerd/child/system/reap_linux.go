package system

import (
	"os"
	"strconv"
	"syscall"
)

// ReapOrphans waits for all ended children of this process except the program,
// which has its own goroutine. It is safe only if the process has no other
// children than the program and orphans.
func ReapOrphans(program int) {
	for _, pid := range processes() {
		if pid != program && isOrphan(pid) {
			syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// isOrphan reports whether a process is a child of this one and has ended.
func isOrphan(pid int) bool {
	fields := statOf(pid)
	return len(fields) > 1 && string(fields[0]) == "Z" && string(fields[1]) == strconv.Itoa(os.Getpid())
}
