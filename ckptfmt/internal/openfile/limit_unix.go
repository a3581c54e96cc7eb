//go:build unix

package openfile

import "golang.org/x/sys/unix"

// mostOpen returns how many descriptors files may have: half of what the process may have.
func mostOpen() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return atMost
	}
	return int(min(max(uint64(limit.Cur)/2, anyway), atMost))
}
