package trial

import (
	"io/fs"
	"syscall"
	"time"
)

// readAt returns when a file was read, as far as its file system keeps that.
func readAt(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Atim.Unix())
	}
	return time.Time{}
}
