//go:build !unix

package logdir

import (
	"errors"
	"os"
)

func acquireLock(name string) (*Lock, Holder, error) { return lockByFile(name) }

// lockedByOther knows nothing: the file itself is the lock.
func lockedByOther(string) (locked, known bool) { return false, false }

// lockInherited locks nothing: these systems have no locks that are inherited.
func lockInherited(string) (f *os.File, locked bool, err error) { return nil, false, nil }

func processExists(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return errors.Is(err, os.ErrPermission) // it is another user's
	}
	p.Release()
	return true
}

func unlockClose(f *os.File) error { return f.Close() }
