package logdir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Logdir returns the logdir of a process on this machine, or "" if it has none, or if that cannot
// be read because the process belongs to another user. A copied lock file names a process that has
// another logdir.
func (h Holder) Logdir() string {
	if me, err := thisProcess(); err != nil || me.Host != h.Host || h.PID == 0 {
		return ""
	}
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", h.PID)) // the pattern is one
	for _, fd := range open {
		name, err := os.Readlink(fd)
		if dir := filepath.Dir(name); err == nil && filepath.Base(name) == LockFile && Named(dir) == h {
			return dir
		}
	}
	return ""
}
