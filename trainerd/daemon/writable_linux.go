package daemon

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// writable makes an unnamed file in a folder, which changes nothing there. If the file system does
// not support that, it makes a folder and removes it again: some file systems, such as /proc and
// network shares, grant the permission but refuse later.
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
