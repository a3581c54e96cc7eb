package prove

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/braces"
)

// Workdir is the working directory of a program that writes into a fixed folder
// below it. Each run gets a copy, so that no run finds the files of another: links
// to everything in it except that folder, which is empty.
type Workdir struct {
	Dir    string // absolute
	Output string // the logdir, below Dir
	// Pattern is that of the checkpoints below the logdir. If the logdir is Dir
	// itself, the copy has no links to them, nor to trainerd's files there.
	Pattern string
}

// Make makes the copy for a run, unless it is there already.
func (w *Workdir) Make(dir string) error {
	if err := os.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		return nil // the run continues
	} else if err != nil {
		return err
	}
	if filepath.Clean(w.Output) == "." {
		return w.makeBeside(dir)
	}
	parts := strings.Split(filepath.ToSlash(w.Output), "/")
	for i, part := range parts {
		above := filepath.Join(parts[:i]...)
		if err := linkAll(filepath.Join(w.Dir, above), filepath.Join(dir, above), func(name string) bool { return name == part }); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(dir, above, part), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// makeBeside makes the copy where the program saves in its working directory, or in
// folders there, which are empty in the copy.
func (w *Workdir) makeBeside(dir string) error {
	const most = 64 // alternatives of a pattern
	tops, folders := []string{"damaged", "trainerd.*", "*tfevents*", "run-report.*", "checkpoint"}, map[string]bool{}
	for _, pattern := range braces.Expand(filepath.ToSlash(w.Pattern), most) {
		top, _, isFolder := strings.Cut(path.Clean(pattern), "/")
		tops = append(tops, top)
		folders[top] = isFolder
	}
	var made []string
	err := linkAll(w.Dir, dir, func(name string) bool {
		is := slices.IndexFunc(tops, func(top string) bool { ok, _ := path.Match(top, name); return ok })
		if is >= 0 && folders[tops[is]] {
			made = append(made, name)
		}
		return is >= 0
	})
	for _, name := range made {
		err = errors.Join(err, os.Mkdir(filepath.Join(dir, name), 0o777))
	}
	return err
}

// linkAll links what is in one folder into another, but for some names.
func linkAll(from, to string, but func(name string) bool) error {
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it comes with the first run
		return err
	}
	for _, e := range entries {
		if but(e.Name()) {
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
