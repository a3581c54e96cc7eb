package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Move renames a file or a folder to a name that is free. On overlayfs, as in containers, a folder
// of a lower layer cannot be renamed, but its contents can: then they are moved into a new folder,
// so that a crash may leave a part in each. If something in it cannot be moved, for example to
// another disk, nothing is.
func Move(fsys FS, from, to string) error {
	fsys = OrOS(fsys)
	err := fsys.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if info, failed := os.Lstat(from); failed != nil || !info.IsDir() {
		return err
	}
	entries, failed := os.ReadDir(from)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return moveEntries(fsys, from, to, entries)
}

// moveEntries moves the contents of a folder into a new one, and back if anything fails.
func moveEntries(fsys FS, from, to string, entries []fs.DirEntry) error {
	if err := fsys.Mkdir(to); err != nil {
		return err
	}
	moved, err := moveEach(fsys, from, to, entries)
	if err == nil {
		err = fsys.SyncDir(to)
	}
	if err == nil {
		err = fsys.Remove(from)
	}
	if err == nil {
		return nil
	}
	errs := []error{err}
	for _, e := range slices.Backward(entries[:moved]) {
		errs = append(errs, Move(fsys, filepath.Join(to, e.Name()), filepath.Join(from, e.Name())))
	}
	return errors.Join(append(errs, fsys.Remove(to))...)
}

// moveEach moves entries from one folder to another, and returns how many it has moved.
func moveEach(fsys FS, from, to string, entries []fs.DirEntry) (moved int, err error) {
	for i, e := range entries {
		if err := Move(fsys, filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return i, err
		}
	}
	return len(entries), nil
}
