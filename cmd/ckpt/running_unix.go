//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"errors"
	"os"
	"syscall"
)

// isLocked reports whether a process holds the lock file. Where files cannot be
// locked, or this one is another user's and not to be read, the holder's name in
// it is the lock.
func isLocked(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return namesHolder(name)
	}
	defer f.Close() // which unlocks it
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true
		case err != nil:
			return namesHolder(name)
		}
		return false
	}
}
