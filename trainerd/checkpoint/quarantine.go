package checkpoint

import (
	"errors"
	"io/fs"
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

// filesOf returns the names of a checkpoint's files within their directory, also of
// a V1 checkpoint in several files, whose prefix is a pattern.
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

// MoveAside moves the files and folders of a damaged checkpoint of any source into
// a new directory in the folder [DamagedDir] of a logdir. They are never deleted:
// somebody may want to rescue their contents. The files are moved in the given
// order. If they are on another disk, which is mounted below the logdir, the folder is next to
// the first of them.
func MoveAside(fsys ckptfmt.FS, logdir, name string, files []string, now time.Time) (dir string, err error) {
	fsys = atomicfile.OrOS(fsys)
	dir, err = moveTo(fsys, filepath.Join(logdir, DamagedDir), name, files, now)
	if errors.Is(err, syscall.EXDEV) && fsys.Remove(dir) == nil { // else some files are there
		return moveTo(fsys, filepath.Join(folderOf(files[0]), DamagedDir), name, files, now)
	}
	return dir, err
}

// folderOf returns the folder of a file, which may have a second name in a temporary one there.
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
	taken, left := map[string]bool{}, []string(nil)
	changed := []string{dir} // the new names first: a power cut between the two leaves both
	for i, file := range files {
		to := filepath.Join(dir, filepath.Base(file))
		if taken[to] { // of two folders
			sub := filepath.Join(dir, strconv.Itoa(i))
			if err := atomicfile.MkdirSync(fsys, sub); err != nil {
				return dir, err
			}
			to, changed = filepath.Join(sub, filepath.Base(file)), append(changed, sub)
		}
		taken[to] = true
		if err := fsys.Rename(file, to); err != nil {
			return dir, err
		}
		left = append(left, filepath.Dir(file))
	}
	slices.Sort(left)
	var errs []error
	for _, folder := range append(changed, slices.Compact(left)...) {
		errs = append(errs, fsys.SyncDir(folder))
	}
	return dir, errors.Join(errs...)
}
