//go:build unix

package savedmodel

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lockFolder locks a folder until the file that it returns is closed, or the process
// ends.
func lockFolder(dir string) (*os.File, lockState) {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, lockTaken
	}
	if err != nil {
		return nil, lockUnknown
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		f.Close()
		return nil, lockTaken
	case err != nil:
		f.Close()
		return nil, lockUnknown
	}
	opened, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, lockUnknown
	}
	if there, err := os.Lstat(dir); err != nil || !os.SameFile(opened, there) {
		f.Close()
		return nil, lockTaken // its holder has removed it, or renamed it
	}
	return f, lockHeld
}
