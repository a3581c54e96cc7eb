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
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// Workdir is the working directory of a program that writes into a fixed folder
// below it. Each run gets a copy, so that no run finds the files of another, and none
// changes what is there: a training of weeks may have saved in it.
type Workdir struct {
	Dir    string // absolute
	Output string // the logdir, below Dir, which is empty in the copy
	// Pattern is that of the checkpoints below the logdir. If the logdir is Dir
	// itself, the copy has none of them, nor trainerd's files there.
	Pattern string
	// Command is that of the program. What it names is in the copy.
	Command []string

	leftOut []string // earlier checkpoints that are not in the copies
}

// Make makes the copy for a run, unless it is there already.
func (w *Workdir) Make(dir string) error {
	if err := os.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		return nil // the run continues
	} else if err != nil {
		return err
	}
	c := &copier{files: maxFiles, bytes: maxBytes, command: w.Command}
	if output := filepath.ToSlash(filepath.Clean(w.Output)); output == "." {
		c.emptied = w.emptied()
	} else {
		c.emptied = func(name string) (empty, folder bool) { return name == output, true }
	}
	err := c.folder(w.Dir, dir, ".")
	for _, name := range c.leftOut {
		if !slices.Contains(w.leftOut, name) {
			w.leftOut = append(w.leftOut, name)
		}
	}
	return errors.Join(err, os.MkdirAll(filepath.Join(dir, w.Output), 0o777)) // it may come with the first run
}

// emptied says what is left out where the program saves in its working directory, or in
// folders there, which are empty in the copy.
func (w *Workdir) emptied() func(name string) (empty, folder bool) {
	tops, folders := []string{checkpoint.DamagedDir, "trainerd.*", "*tfevents*", "run-report.*", "checkpoint"}, map[string]bool{}
	for _, pattern := range braces.Expand(filepath.ToSlash(w.Pattern)) {
		top, _, isFolder := strings.Cut(path.Clean(pattern), "/")
		tops = append(tops, top)
		folders[top] = isFolder
	}
	return func(name string) (empty, folder bool) {
		is := slices.IndexFunc(tops, func(top string) bool { ok, _ := path.Match(top, name); return ok })
		return is >= 0, is >= 0 && folders[tops[is]]
	}
}

// workdir returns the working directory of a run, "" where all have the same, and
// its logdir.
func (p *proof) workdir(name string) (dir, logdir string) {
	dir = filepath.Join(p.Scratch, name)
	if p.Workdir == nil {
		return "", filepath.Join(dir, p.Below)
	}
	return dir, filepath.Join(dir, p.Workdir.Output)
}
