package logdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check returns a [*LockedError] if another process writes to a logdir, and
// nil if a run could begin there. It takes no lock, so the answer may be out
// of date as soon as it is returned.
func Check(dir string) error {
	name := filepath.Join(dir, LockFile)
	holder, err := holderOf(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking for the logdir's holder: %w", err)
	case holder.PID == 0:
		return nil // released
	}
	// Somebody is named there, but may have died: only the lock can tell.
	switch locked, known := lockedByOther(name); {
	case locked:
		return &LockedError{Logdir: dir, File: name, Holder: holder}
	case known:
		return nil // the name of the dead holder stays, for the run that takes over
	}
	return checkByName(dir, name, holder)
}

// checkByName is Check if the name in the file is the lock. The name is not removed, even that of a
// dead process: the run that takes over will log that.
func checkByName(dir, name string, holder Holder) error {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // it was released meanwhile
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // as a link, which a run does not follow
		return &fs.PathError{Op: "lock", Path: name, Err: errors.New("not a regular file")}
	}
	me, err := thisProcess()
	if err != nil {
		return err
	}
	if holder.Host == me.Host && holder.isGone(me) {
		return nil
	}
	return &LockedError{Logdir: dir, File: name, Holder: holder, ByName: true}
}

// Named returns the process that a logdir's lock file names, or the zero Holder
// for none. Unless [Check] says that it holds the logdir, it has died without
// unlocking it.
func Named(dir string) Holder {
	holder, err := holderOf(filepath.Join(dir, LockFile))
	if err != nil {
		return Holder{}
	}
	return holder
}
