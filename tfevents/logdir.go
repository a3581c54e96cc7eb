package tfevents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Run is a directory that holds events files: one curve for each tag.
type Run struct {
	Name  string   // the directory below the log directory, "." for itself; see [RunName]
	Files []string // in the order in which they are read, that of their names
}

// maxDepth ends a walk through directories that link to each other in ways that a comparison with
// their parents does not detect.
const maxDepth = 64

// FindRuns returns the runs below root, ordered by name, as TensorBoard finds
// them: every directory that directly holds a file whose name contains
// "tfevents". Links are followed, pipes and devices left out. A directory that cannot be read is reported
// in the error; what was found elsewhere is still returned.
func FindRuns(fsys fs.FS, root string) ([]Run, error) {
	w := walker{fsys: fsys, root: root}
	w.walk(root, nil)
	slices.SortFunc(w.runs, func(a, b Run) int { return strings.Compare(a.Name, b.Name) })
	return w.runs, errors.Join(w.errs...)
}

type walker struct {
	fsys fs.FS
	root string
	runs []Run
	errs []error
}

// walk looks into dir, which lies within the given directories.
func (w *walker) walk(dir string, within []fs.FileInfo) {
	info, err := fs.Stat(w.fsys, dir)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("tfevents: %w", err))
		return
	}
	for _, parent := range within {
		if os.SameFile(parent, info) {
			return // a link to where the walk came from
		}
	}
	entries, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("tfevents: %w", err))
	}
	within = append(within[:len(within):len(within)], info)
	run := Run{Name: w.runName(dir)}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		mode, err := entryMode(w.fsys, name, e)
		switch {
		case err != nil:
			// A dangling link, or a file that has just been removed.
		case mode.IsDir() && len(within) < maxDepth:
			w.walk(name, within)
		case holdsBytes(mode) && IsEventsFile(name):
			run.Files = append(run.Files, name)
		}
	}
	if len(run.Files) > 0 {
		slices.Sort(run.Files)
		w.runs = append(w.runs, run)
	}
}

// entryMode returns what an entry is, or what it links to.
func entryMode(fsys fs.FS, name string, e fs.DirEntry) (fs.FileMode, error) {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type(), nil
	}
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

// holdsBytes reports whether a file can be read to an end: opening a pipe that nobody writes to
// would block forever.
func holdsBytes(mode fs.FileMode) bool {
	return mode&(fs.ModeDir|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) == 0
}

func (w *walker) runName(dir string) string {
	if dir == w.root {
		return "."
	}
	if w.root == "." {
		return RunName(dir)
	}
	return RunName(strings.TrimPrefix(strings.TrimPrefix(dir, w.root), "/"))
}

// RunName returns the name of the run in a directory: its path below the log
// directory, with U+FFFD in place of invalid UTF-8, as messages and pages require.
func RunName(dir string) string { return strings.ToValidUTF8(dir, string(utf8.RuneError)) }
