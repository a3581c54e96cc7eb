package manifest

import (
	"io/fs"
	"syscall"
	"time"
)

// changedAt returns when the kernel noted the last change of a file, or of its times: nobody can
// set this one. It is zero if that is not known.
func changedAt(info fs.FileInfo) time.Time {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(stat.Ctim.Unix()).UTC()
}
