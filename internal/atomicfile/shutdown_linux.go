package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// shutDown returns an error if the file system of a directory has shut down, as it does when its
// disk fails. Then XFS reverts changes of names, and a later sync of the directory finds nothing
// left to do and reports success; only reading an attribute fails.
func shutDown(d *os.File) error {
	if _, err := unix.Fgetxattr(int(d.Fd()), "user.trainerd", nil); err == unix.EIO {
		return &os.PathError{Op: "sync", Path: d.Name(), Err: err}
	}
	return nil
}
