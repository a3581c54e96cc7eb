package ckptdir

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"github.com/trainerd/trainerd/ckptfmt"
)

// IsUnreadable reports whether err says that the operating system could not
// read a file: for lack of permission or file handles, or because of the device
// or the network. The file may be intact, and the cause can be fixed. It is
// false for damage and for missing files.
func IsUnreadable(err error) bool {
	var corrupt *ckptfmt.CorruptError
	if errors.As(err, &corrupt) || errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return !slices.Contains(noSuchFile, errno)
	}
	return errors.Is(err, fs.ErrPermission)
}

// noSuchFile are errors that say of a name that no file can have it.
var noSuchFile = []syscall.Errno{syscall.ENOTDIR, syscall.ENAMETOOLONG}
