package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// SetDirect implements [DirectFile].
func (f osFile) SetDirect(on bool) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return false
	}
	if flags &^= unix.O_DIRECT; on && writesDirectly(f.File) {
		flags |= unix.O_DIRECT
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return err == nil && flags&unix.O_DIRECT != 0
}

// writesDirectly reports whether direct writes are faster on the file system of a file.
// Those over a network or in a process wait for each, and btrfs leaves out compression.
func writesDirectly(f *os.File) bool {
	switch fileSystemOf(f) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC:
		return true
	}
	return false
}
