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
