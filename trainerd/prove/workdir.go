package prove

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Workdir is the working directory of a program that writes into a folder below
// it by a name of its own. Each run gets a copy, so that no run finds what another
// has left: links to all that is there, but for that folder, which is empty.
type Workdir struct {
	Dir    string // absolute
	Output string // the logdir, below Dir
}

// make makes the copy for a run, unless it is there already.
func (w *Workdir) make(dir string) error {
	if err := os.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		return nil // the run continues
	} else if err != nil {
		return err
	}
	parts := strings.Split(filepath.ToSlash(w.Output), "/")
	for i, part := range parts {
		above := filepath.Join(parts[:i]...)
		if err := linkAll(filepath.Join(w.Dir, above), filepath.Join(dir, above), part); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(dir, above, part), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// linkAll links what is in one folder into another, but for one name.
func linkAll(from, to, but string) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it comes with the first run
		return err
	}
	for _, e := range entries {
		if e.Name() == but {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// workdir returns the working directory of a run, "" where all have the same, and
// its logdir.
func (p *proof) workdir(name string) (dir, logdir string) {
	dir = filepath.Join(p.Scratch, name)
	if p.Workdir == nil {
		return "", dir
	}
	return dir, filepath.Join(dir, p.Workdir.Output)
}
