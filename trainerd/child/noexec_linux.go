package child

import "golang.org/x/sys/unix"

// isNoexec reports whether a file is on a file system that is mounted noexec.
func isNoexec(name string) bool {
	var st unix.Statfs_t
	return unix.Statfs(name, &st) == nil && st.Flags&unix.ST_NOEXEC != 0
}
