package logdir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Logdir returns the logdir that a process of this machine has, "" if it has none or that cannot
// be read, as that of another user's process. A copied lock file names a process that has another logdir.
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
