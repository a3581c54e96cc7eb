package system

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/trainerd/trainerd/trainerd/logdir"
)

// group is how the processes of a program are recognised.
type group struct {
	mark []byte // in their environment
	lock string // the file that they have open, "" for one that nobody has locked
}

// groupOf returns the group of a logdir. Nobody else may start a program there.
func groupOf(dir string) group {
	g := group{mark: []byte(GroupVariable + "=" + dir)}
	lock, err := logdir.HoldGroup(dir)
	if _, held := errors.AsType[*logdir.GroupError](err); held {
		g.lock, _ = filepath.EvalSymlinks(filepath.Join(dir, logdir.GroupFile))
	}
	if lock != nil {
		lock.Close()
	}
	return g
}

// leftovers returns the processes of the program of a logdir, except this one and its ancestors:
// trainerd may be the program of another trainerd.
func leftovers(dir string) []int {
	g := groupOf(dir)
	return slices.DeleteFunc(processes(), func(pid int) bool { return !g.has(pid) || isAbove(pid) })
}

// has reports whether a process belongs to the group.
func (g group) has(pid int) bool { return hasMark(pid, g.mark) || g.lock != "" && hasOpen(pid, g.lock) }

// hasOpen reports whether a process has a file open. Other users' processes cannot be examined.
func hasOpen(pid int, name string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if to, err := os.Readlink(dir + "/" + e.Name()); err == nil && to == name {
			return true
		}
	}
	return false
}

// hasMark reports whether the environment of a process has the mark. Other users' environments
// cannot be read, but their processes are not ours. A process that has ended has none.
func hasMark(pid int, mark []byte) bool {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	for variable := range bytes.SplitSeq(b, []byte{0}) {
		if bytes.Equal(variable, mark) {
			return true
		}
	}
	return false
}

// isAbove reports whether a process is this one or an ancestor of it.
func isAbove(pid int) bool {
	for at := os.Getpid(); at > 0; at = parentOf(at) {
		if at == pid {
			return true
		}
	}
	return false
}

// signalAll sends a signal to those processes that still belong to the group.
func signalAll(dir string, pids []int, sig syscall.Signal) {
	g := groupOf(dir)
	for _, pid := range pids {
		if g.has(pid) {
			syscall.Kill(pid, sig)
		}
	}
}
