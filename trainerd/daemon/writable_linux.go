package daemon

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// writable makes a file without a name in a folder, which changes nothing there.
// Where the file system has no such files it makes a folder and removes it again:
// asked for rights alone, some, as /proc and shares, say yes and refuse later.
func writable(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return unix.Close(fd)
	}
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		return makeAndRemove(dir)
	}
	return &fs.PathError{Op: "create a file in", Path: dir, Err: err}
}

func makeAndRemove(dir string) error {
	name, err := os.MkdirTemp(dir, ".trainerd-check-")
	if err != nil {
		return err
	}
	return os.Remove(name)
}
