package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/internal/walkdir"
	"github.com/trainerd/trainerd/tfevents"
)

// misnamedLimit is how many files below a directory are looked into that are no
// events files by their names.
const misnamedLimit = 10000

// findMisnamed looks for what TensorBoard takes for something else by its name: events
// files for other files, directories for events files.
func findMisnamed(c *cli.Context, paths []string) ([]finding, error) {
	runs, err := selected(c, "run")
	if err != nil {
		return nil, err
	}
	t := treeChecker{ctx: c.Context, runs: runs, found: []finding{}}
	for _, t.root = range paths {
		if err := walkdir.Walk(t.root, t.look); err != nil {
			return nil, err
		}
	}
	return t.found, nil
}

// treeChecker looks at the names below directories.
type treeChecker struct {
	ctx    context.Context
	runs   *regexp.Regexp
	root   string
	looked int
	found  []finding
}

func (t *treeChecker) look(path string, d fs.DirEntry, err error) error {
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	if err != nil || path == t.root {
		return nil // what cannot be read is reported elsewhere
	}
	if !d.Type().IsRegular() {
		t.lookAtDir(path, d)
		return nil
	}
	if tfevents.IsEventsFile(path) {
		return nil
	}
	if t.looked++; t.looked > misnamedLimit {
		return fs.SkipAll
	}
	if t.selected(path) && beginsAsEventsFile(path) {
		t.add(path, "is an events file, but is not read: its name does not contain \"tfevents\"")
	}
	return nil
}

// lookAtDir looks at a directory, or a link to one, for what ends the Python loader's
// walk through all runs.
func (t *treeChecker) lookAtDir(path string, d fs.DirEntry) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() || !t.selected(path) {
		return
	}
	switch {
	case !utf8.ValidString(d.Name()):
		t.add(path, "has a name that is not UTF-8: the Python loader loads no run at all; rename it")
	case tfevents.IsEventsFile(path) && holdsEvents(path) && holdsEvents(filepath.Dir(path)):
		t.add(path, "is a directory, but named as an events file of the run that it lies in: the Python loader stops loading, also other runs; rename it")
	case d.Type()&fs.ModeSymlink != 0 && t.contains(info, path):
		t.add(path, "is a link to a directory that it lies in: the Python loader shows the same runs some 40 times; remove the link")
	}
}

func (t *treeChecker) selected(path string) bool {
	return t.runs.MatchString(filepath.ToSlash(filepath.Dir(path)))
}

func (t *treeChecker) add(path, problem string) {
	t.found = append(t.found, finding{Run: filepath.ToSlash(filepath.Dir(path)), File: path, Problem: problem})
}

// contains reports whether a path below the root lies in a directory.
func (t *treeChecker) contains(dir fs.FileInfo, path string) bool {
	for path != t.root && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		if parent, err := os.Stat(path); err == nil && os.SameFile(parent, dir) {
			return true
		}
	}
	return false
}

// holdsEvents reports whether a directory is that of a run.
func holdsEvents(dir string) bool {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && tfevents.IsEventsFile(e.Name()) {
			return true
		}
	}
	return false
}

// beginsAsEventsFile reports whether the first record of a file is an event with
// a version.
func beginsAsEventsFile(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, 256)
	n, _ := file.Read(head)
	r := tfevents.NewReader(bytes.NewReader(head[:n]))
	e, err := r.Next()
	return err == nil && strings.HasPrefix(e.GetFileVersion(), "brain.Event:")
}
