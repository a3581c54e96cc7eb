package logdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Missing returns the first folder on the way to a logdir that is not there, "" for none.
func Missing(dir string) (top string) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for ; ; abs = filepath.Dir(abs) {
		if _, err := os.Lstat(abs); !errors.Is(err, fs.ErrNotExist) {
			return top
		}
		top = abs
	}
}

// RemoveUnused removes a logdir in which a run that was refused has made nothing but its lock
// file, with the folders above it from top on, which were missing before: see [Missing]. A
// logdir that another process has by now, or that has anything else in it, stays.
func RemoveUnused(dir, top string) error {
	abs, err := filepath.Abs(dir)
	if err != nil || top == "" || !isUnused(abs) {
		return err
	}
	name := filepath.Join(abs, LockFile)
	lock, _, err := acquireLock(name)
	if lock == nil {
		return err
	}
	if unused := isUnused(abs); unused && !lock.remove {
		err = os.Remove(name) // while it is locked: see acquireLock
	}
	if err = errors.Join(err, lock.Release()); err != nil {
		return err
	}
	return removeEmpty(abs, top)
}

// isUnused reports whether a folder has nothing but a lock file that names nobody.
func isUnused(dir string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, infoErr := e.Info()
		if e.Name() != LockFile || infoErr != nil || info.Size() > 0 {
			return false
		}
	}
	return err == nil
}

// removeEmpty removes a folder and those above it, up to top, as far as they are empty.
func removeEmpty(dir, top string) error {
	for {
		err := os.Remove(dir)
		if entries, readErr := os.ReadDir(dir); err != nil && readErr == nil && len(entries) > 0 {
			return nil // somebody uses it
		}
		if err != nil || dir == top {
			return err
		}
		dir = filepath.Dir(dir)
	}
}
