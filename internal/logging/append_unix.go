//go:build unix

package logging

import (
	"os"

	"golang.org/x/sys/unix"
)

// Append has all that is written to a regular file go to its end, wherever that is by then. A shell
// opens the file of `>log` to be written from where the last write has ended: where logrotate's
// copytruncate has emptied it, the next line would come after a gap of zeros as long as the log was.
func Append(f *os.File) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags|unix.O_APPEND) // where it fails, all is as it was
	}
}
