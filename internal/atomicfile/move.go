package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Move renames a file or a folder to a name that is free. On overlayfs, as containers have it, a
// folder of a lower layer cannot be renamed, though what is in it can: it is moved into a new folder
// then, so that a crash may leave a part in each. If something in it cannot be moved, as to another
// disk, nothing is.
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

func moveEntries(fsys FS, from, to string, entries []fs.DirEntry) error {
	err := fsys.Mkdir(to)
	if err != nil {
		return err
	}
	moved := 0
	for ; err == nil && moved < len(entries); moved++ {
		name := entries[moved].Name()
		err = Move(fsys, filepath.Join(from, name), filepath.Join(to, name))
	}
	if err == nil {
		err = fsys.SyncDir(to)
	} else {
		moved--
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
