package logdir

import (
	"fmt"
	"os"
	"path/filepath"
)

// GroupFile is the file in a logdir that is locked as long as any process of a
// supervised program is alive, even if its supervisor is not.
const GroupFile = "trainerd.group.lock"

// GroupError says that processes of an earlier start of a program are still
// alive.
type GroupError struct {
	Logdir string
	PIDs   []int // the known ones, on this machine
}

func (e *GroupError) Error() string {
	if len(e.PIDs) > 0 {
		return fmt.Sprintf("processes %v still write to logdir %s and cannot be ended; end them, or restart the machine", e.PIDs, e.Logdir)
	}
	return fmt.Sprintf("processes of an earlier start of the program still use logdir %s, and are not visible from here: "+
		"in another container, or on another machine; end them there (they have %s open)", e.Logdir, GroupFile)
}

// HoldGroup locks a logdir for the processes that will inherit the file: they hold
// the lock until the last of them closes the file or ends. The caller closes its own
// file once the first process has started. The error is a [*GroupError] if others
// hold the lock; the file is nil if the file system has no such locks. On NFS a lock
// is not inherited, and keeps nobody out.
func HoldGroup(dir string) (*os.File, error) {
	f, locked, err := lockInherited(filepath.Join(dir, GroupFile))
	switch {
	case err != nil:
		return nil, lockError(dir, "locking logdir for a program", err)
	case locked:
		return nil, &GroupError{Logdir: dir}
	}
	return f, nil
}
