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
	err = d.Sync()
	if err == nil {
		err = shutDown(d)
	}
	if err != nil {
		d.Close()
		return err
	}
	return d.Close()
}

// sameDevice reports whether two directories are in one file system. What is
// mounted somewhere is there as long as it is mounted.
func sameDevice(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	if err != nil {
		return false
	}
	s, ok := x.Sys().(*syscall.Stat_t)
	t, same := y.Sys().(*syscall.Stat_t)
	return ok && same && s.Dev == t.Dev
}
