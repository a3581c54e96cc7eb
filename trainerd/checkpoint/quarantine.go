package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/atomicfile"
)

// DamagedDir is the folder in the logdir for checkpoints that cannot be used.
const DamagedDir = "damaged"

// Quarantine moves the files of a checkpoint into a new directory next to it.
func Quarantine(fsys ckptfmt.FS, prefix string, now time.Time) (dir string, err error) {
	names, err := filesOf(prefix)
	if err != nil || len(names) == 0 {
		return "", err
	}
	from := filepath.Dir(prefix)
	for i, name := range names {
		names[i] = filepath.Join(from, name)
	}
	return MoveAside(fsys, from, filepath.Base(unsharded(prefix)), names, now)
}

// filesOf returns the names of a checkpoint's files within their directory, even of a V1 checkpoint
// in several files, whose prefix is a pattern.
func filesOf(prefix string) ([]string, error) {
	if unsharded(prefix) == prefix {
		return layout.Files(prefix)
	}
	c, err := ckptdir.Find(prefix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, name := range c.Files {
		names = append(names, filepath.Base(name))
	}
	return names, err
}

// MoveAside moves the files and folders of a damaged checkpoint of any source into a new directory
// in the folder [DamagedDir] of a logdir. They are never deleted: somebody may want to salvage
// their contents. The files are moved in the given order, and back if one of them cannot be. If
// they are on another disk, which is mounted below the logdir, the folder is next to the first of
// them.
func MoveAside(fsys ckptfmt.FS, logdir, name string, files []string, now time.Time) (dir string, err error) {
	fsys = atomicfile.OrOS(fsys)
	dir, err = moveTo(fsys, filepath.Join(logdir, DamagedDir), name, files, now)
	if errors.Is(err, syscall.EXDEV) && fsys.Remove(dir) == nil { // else some files are there
		return moveTo(fsys, filepath.Join(folderOf(files[0]), DamagedDir), name, files, now)
	}
	return dir, err
}

// MoveBack is the reverse of [MoveAside], for the same files. Those that are not in dir were
// moved back before.
func MoveBack(fsys ckptfmt.FS, dir string, files []string) error {
	fsys = atomicfile.OrOS(fsys)
	var from, to []string
	for i, place := range slices.Backward(placesIn(dir, files)) { // a folder before what was in it
		if _, err := os.Lstat(place); !errors.Is(err, fs.ErrNotExist) {
			from, to = append(from, place), append(to, files[i])
		}
	}
	if err := renameAll(fsys, from, to); err != nil {
		return err
	}
	return errors.Join(syncFolders(fsys, files), syncFolders(fsys, from))
}

// folderOf returns the folder of a file, which may have a second name in a temporary folder there.
func folderOf(file string) string {
	if dir := filepath.Dir(file); !atomicfile.IsTemp(filepath.Base(dir)) {
		return dir
	}
	return filepath.Dir(filepath.Dir(file))
}

// moveTo moves files and folders into a new directory in another one.
func moveTo(fsys ckptfmt.FS, parent, name string, files []string, now time.Time) (dir string, err error) {
	if err := atomicfile.MkdirSync(fsys, parent); err != nil {
		return "", err
	}
	dir = filepath.Join(parent, name+now.UTC().Format("-20060102T150405.000000000"))
	if err := atomicfile.MkdirSync(fsys, dir); err != nil {
		return "", err
	}
	places := placesIn(dir, files)
	for _, place := range places {
		if sub := filepath.Dir(place); sub != dir {
			if err := atomicfile.MkdirSync(fsys, sub); err != nil {
				return dir, err
			}
		}
	}
	if err := renameAll(fsys, files, places); err != nil {
		for _, place := range places {
			if sub := filepath.Dir(place); sub != dir {
				_ = fsys.Remove(sub) // it is empty, or has what could not be moved back
			}
		}
		return dir, err
	}
	// The new names first, so that a power cut between the two leaves both.
	return dir, errors.Join(syncFolders(fsys, places), syncFolders(fsys, files))
}

// placesIn returns where files are moved to in a directory. Files of the same name from two folders
// get separate folders.
func placesIn(dir string, files []string) []string {
	places, taken := make([]string, len(files)), map[string]bool{}
	for i, file := range files {
		base := filepath.Base(file)
		places[i] = filepath.Join(dir, base)
		if taken[base] {
			places[i] = filepath.Join(dir, strconv.Itoa(i), base)
		}
		taken[base] = true
	}
	return places
}

// renameAll renames all files, or none if one of them cannot be renamed.
func renameAll(fsys ckptfmt.FS, from, to []string) error {
	for i := range from {
		err := atomicfile.Move(fsys, from[i], to[i])
		if err == nil {
			continue
		}
		errs := []error{err}
		for i--; i >= 0; i-- {
			errs = append(errs, atomicfile.Move(fsys, to[i], from[i]))
		}
		return errors.Join(errs...)
	}
	return nil
}

// syncFolders makes the names of files durable. A folder may have been moved itself.
func syncFolders(fsys ckptfmt.FS, names []string) error {
	var folders []string
	for _, name := range names {
		folders = append(folders, filepath.Dir(name))
	}
	slices.Sort(folders)
	var errs []error
	for _, folder := range slices.Compact(folders) {
		if err := fsys.SyncDir(folder); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
