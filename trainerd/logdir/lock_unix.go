//go:build unix

package logdir

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acquireLock locks the file by flock, which ends with the process however it
// dies. It returns who is named in the file: the holder when the lock is taken,
// else the process that left it without releasing it. A file that [RemoveUnused]
// has removed meanwhile, which locks nothing, is made again.
func acquireLock(name string) (*Lock, Holder, error) {
	for range mostRemoved {
		lock, holder, err := lockFile(name)
		if lock == nil || lock.remove || lock.isAt(filepath.Dir(name)) {
			return lock, holder, err
		}
		unlockClose(lock.file)
	}
	return nil, Holder{}, &os.PathError{Op: "flock", Path: name, Err: os.ErrNotExist}
}

// mostRemoved bounds how often in a row a lock file may be removed just before it is locked.
const mostRemoved = 100

func lockFile(name string) (*Lock, Holder, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o666)
	if err != nil {
		return nil, Holder{}, err
	}
	err = flock(f)
	holder := readHolder(f)
	switch {
	case err == nil:
		return &Lock{file: f}, holder, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, holder, f.Close()
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		f.Close()
		if holder.PID == 0 {
			os.Remove(name) // made by the OpenFile above
		}
		return lockByFile(name)
	}
	f.Close()
	return nil, Holder{}, &os.PathError{Op: "flock", Path: name, Err: err}
}

// lockInherited locks a file by flock, which belongs to all processes that have
// inherited the descriptor.
func lockInherited(name string) (f *os.File, locked bool, err error) {
	f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o666)
	if err != nil {
		return nil, false, err
	}
	switch err := flock(f); {
	case err == nil:
		return f, false, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, true, f.Close()
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return nil, false, f.Close()
	default:
		f.Close()
		return nil, false, &os.PathError{Op: "flock", Path: name, Err: err}
	}
}

// lockedByOther reports whether another process has the lock, and whether that is known. It only
// needs to read the file, which may belong to another user, or be on a read-only disk. Several
// processes may check at the same time.
func lockedByOther(name string) (locked, known bool) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false, false
	}
	switch err := flockAs(f, unix.LOCK_SH); {
	case err == nil:
		unlockClose(f)
		return false, true
	case errors.Is(err, unix.EWOULDBLOCK):
		f.Close()
		return true, true
	}
	f.Close()
	return false, false
}

const (
	maxLook   = 2 * time.Second // that a command which looks at a lock may have a share of it
	lookPause = 5 * time.Millisecond
)

// flock locks a file for this process alone. Who looks at the lock has a share of it for a
// moment, which is waited for; who has all of it is not.
func flock(f *os.File) error {
	for waited := time.Duration(0); ; waited += lookPause {
		err := flockAs(f, unix.LOCK_EX)
		if !errors.Is(err, unix.EWOULDBLOCK) || waited >= maxLook {
			return err
		}
		if flockAs(f, unix.LOCK_SH) != nil {
			return err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_UN); err != nil {
			return err
		}
		time.Sleep(lookPause)
	}
}

func flockAs(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err != unix.EINTR {
			return err
		}
	}
}

// unlockClose unlocks and closes a file. Closing alone does not unlock it while
// a process that is being started still has the file from before its exec.
func unlockClose(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(err, f.Close())
}

func processExists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
