//go:build unix

package atomicfile

import (
	"os"
	"syscall"
)

const openNoFollow = syscall.O_NOFOLLOW

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close() // it was only read
	if err := d.Sync(); err != nil {
		return err
	}
	return shutDown(d)
}

// sameDevice reports whether two directories are in one file system.
func sameDevice(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Dev == y.Dev
}
