package atomicfile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem syncs the file system that holds the first file, and returns the
// files that are on another one. It returns all of them unless a sync of that file
// system is known to do for each file what fsync does.
func syncFileSystem(names []string) (rest []string, err error) {
	first, err := os.Open(names[0])
	if err != nil {
		return nil, err
	}
	defer first.Close()
	if !syncsAsWhole(first) {
		return names, nil
	}
	if err := unix.Syncfs(int(first.Fd())); err != nil {
		return nil, &os.PathError{Op: "syncfs", Path: names[0], Err: err}
	}
	for _, name := range names {
		same, err := wroteBack(first, name)
		if err != nil {
			return nil, err
		}
		if !same {
			rest = append(rest, name)
		}
	}
	return rest, nil
}

func syncsAsWhole(f *os.File) bool {
	switch fileSystemOf(f) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

// fileSystemOf returns the magic number of the file system of a file, 0 if it is not
// known.
func fileSystemOf(f *os.File) int64 {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return 0
	}
	return int64(st.Type) & 0xffffffff
}

// wroteBack reports whether a file is on the file system of another one, and whether
// all of it could be written: kernels before 5.8 do not say so when they sync the whole.
func wroteBack(other *os.File, name string) (same bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var a, b unix.Stat_t
	if err := unix.Fstat(int(other.Fd()), &a); err != nil {
		return false, fmt.Errorf("%s: %w", other.Name(), err)
	}
	if err := unix.Fstat(int(f.Fd()), &b); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if a.Dev != b.Dev {
		return false, nil
	}
	if err := unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE); err != nil {
		return false, &os.PathError{Op: "sync", Path: name, Err: err}
	}
	return true, nil
}
