//go:build unix

package cluster

import (
	"strconv"
	"syscall"
)

// folderNumber returns the inode number of a folder, or "" if there is none.
func folderNumber(dir string) string {
	var st syscall.Stat_t
	if syscall.Stat(dir, &st) != nil {
		return ""
	}
	return strconv.FormatUint(uint64(st.Ino), 10)
}
