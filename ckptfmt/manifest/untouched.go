package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/internal/machine"
)

const (
	// untouchedFor is how long the kernel's word replaces reading a file: bytes can also change on a
	// disk that nobody writes to.
	untouchedFor = time.Hour
	// tick is longer than a tick of the clock with which the kernel dates changes: it gives two changes within
	// one tick the same time.
	tick = 100 * time.Millisecond
	// coarseTick is longer than one of file systems that date changes by the second, or by every other.
	coarseTick = 3 * time.Second
)

// IsUntouched reports whether reading the files would show nothing new: they were read for the record a
// short time ago, in this run of the machine, and the kernel has noted no change of them since.
func (r *Record) IsUntouched(root *os.Root) bool {
	if age := time.Since(r.Verified); age < 0 || age > untouchedFor || r.Boot == "" || r.Boot != machine.BootID() {
		return false
	}
	return !slices.ContainsFunc(r.Files, func(f RecordFile) bool {
		info, err := root.Lstat(filepath.FromSlash(f.Name))
		return err != nil || !changedAt(info).Equal(f.Changed)
	})
}

// stampOf returns when a file was last changed, or zero if it may change again without a new stamp:
// because it has just been changed, or because its file system does not date changes, as some FUSE
// file systems do not.
func stampOf(info fs.FileInfo) time.Time {
	at, least := changedAt(info), tick
	if at.Nanosecond() == 0 {
		least = coarseTick
	}
	if time.Since(at) < least || at.Unix() == 0 {
		return time.Time{}
	}
	return at
}
