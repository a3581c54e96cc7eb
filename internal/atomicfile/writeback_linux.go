package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// beginWriteback sets the disk to work on a part of a file. It is not a sync, and
// if it fails the sync will say so.
func beginWriteback(f *os.File, offset, size int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
}
