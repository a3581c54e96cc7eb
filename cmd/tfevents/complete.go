package main

import (
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/walkdir"
	"github.com/trainerd/trainerd/tfevents"
)

// What is read to complete a tag: the beginning of the newest files has nearly all
// tags of a run, and a person waits for the answer.
const (
	completedFiles = 20
	completedBytes = 1 << 20 // of each file
	completedDirs  = 2000
)

// completions returns what may be typed at a place: the tags and runs of the paths
// that are there, or of the working directory.
func completions(p clidoc.Place) []string {
	dirs := p.Args
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	switch p.Flag {
	case "tag", "delete":
		return tagsBelow(dirs, regexp.QuoteMeta)
	case "rename":
		return tagsBelow(dirs, func(tag string) string { return tag + "=" })
	case "run":
		return runsBelow(dirs)
	case "":
		if p.Command != "" && p.Command != "help" {
			return clidoc.Paths(p.Current, func(path string, d fs.DirEntry) (string, bool) {
				return "events file", !d.IsDir() && tfevents.IsEventsFile(path)
			})
		}
	}
	return nil
}

// eventsFiles calls f for the events files below folders, until it returns false.
// Huge trees are not walked to their ends.
func eventsFiles(dirs []string, f func(dir, name string) bool) {
	left := completedDirs
	for _, dir := range dirs {
		_ = walkdir.Walk(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil
			case d.IsDir():
				if left--; left < 0 {
					return fs.SkipAll
				}
			case tfevents.IsEventsFile(path) && !f(dir, path):
				return fs.SkipAll
			}
			return nil
		})
	}
}

func runsBelow(dirs []string) []string {
	found := make(map[string]bool)
	eventsFiles(dirs, func(dir, name string) bool {
		if rel, err := filepath.Rel(dir, filepath.Dir(name)); err == nil {
			found[regexp.QuoteMeta(filepath.ToSlash(rel))+"\trun"] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(found))
}

// tagsBelow returns the tags of runs, each as form writes it.
func tagsBelow(dirs []string, form func(tag string) string) []string {
	tags := make(map[string]bool)
	files := 0
	eventsFiles(dirs, func(_, name string) bool {
		addTags(tags, name, form)
		files++
		return files < completedFiles
	})
	return slices.Sorted(maps.Keys(tags))
}

// addTags adds the tags in the beginning of a file.
func addTags(tags map[string]bool, name string, form func(tag string) string) {
	f, err := atomicfile.Open(nil, name) // a pipe would keep the person waiting
	if err != nil {
		return
	}
	defer f.Close()
	r := tfevents.NewReader(io.LimitReader(f, completedBytes))
	for {
		e, err := r.Next()
		if err != nil {
			return // also where the part that is read ends
		}
		for _, v := range e.GetSummary().GetValue() {
			tags[form(v.GetTag())] = true
		}
	}
}
