package child

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/eventlog"
)

// eventFiles are the program's events files below the logdir. The search follows symbolic links, as
// TensorBoard does, as long as they stay in the logdir.
type eventFiles struct {
	newest map[string]string // by folder, below the logdir: its newest file
	marks  []string          // of restarts, below the logdir
	beyond []string          // links to folders with events that are not in the logdir
}

// findEvents looks for the events of the program.
func (r *run) findEvents() *eventFiles {
	s := &eventSearch{root: r.root, abs: r.abs, found: &eventFiles{newest: map[string]string{}}, seen: map[string]bool{}}
	s.real, _ = filepath.EvalSymlinks(r.root.Name()) // "" leaves all links alone
	s.walk(".")
	for len(s.links) > 0 {
		link := s.links[0]
		s.links = s.links[1:]
		s.follow(link)
	}
	return s.found
}

// eventSearch is a search for events files.
type eventSearch struct {
	root  *os.Root
	abs   func(name string) string
	real  string // the path of the logdir, without links
	found *eventFiles
	seen  map[string]bool // folders, below the logdir
	links []string        // that are not followed yet
}

// walk looks through a folder of the logdir.
func (s *eventSearch) walk(dir string) {
	_ = fs.WalkDir(s.root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // files come and go
		case d.IsDir():
			return s.enter(name, name == dir)
		case d.Type()&fs.ModeSymlink != 0 && !isForeignEvents(d.Name()):
			s.links = append(s.links, name)
		case eventlog.IsMark(d.Name()):
			s.found.marks = append(s.found.marks, name)
		case isForeignEvents(d.Name()) && leadsToFile(s.abs(name)):
			dir := path.Dir(name)
			s.found.newest[dir] = max(s.found.newest[dir], d.Name())
		}
		return nil
	})
}

// enter returns fs.SkipDir if a folder is to be left out. A hidden one is, unless a link leads
// there.
func (s *eventSearch) enter(name string, asked bool) error {
	top, _, _ := strings.Cut(name, "/")
	hidden := !asked && strings.HasPrefix(path.Base(name), ".")
	if s.seen[name] || hidden || top == checkpoint.DamagedDir || top == ownRun {
		return fs.SkipDir
	}
	s.seen[name] = true
	return nil
}

// follow searches the folder that a link points to.
func (s *eventSearch) follow(link string) {
	target, err := filepath.EvalSymlinks(s.abs(link))
	if err != nil || s.real == "" || leadsToFile(target) {
		return
	}
	below, err := filepath.Rel(s.real, target)
	if err == nil && filepath.IsLocal(below) {
		s.walk(filepath.ToSlash(below))
	} else if hasEvents(target) {
		s.found.beyond = append(s.found.beyond, link)
	}
}

// leadsToFile reports whether a name is a file, or a link to one.
func leadsToFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// hasEvents reports whether a folder that may be of any size has events of a program,
// as far as a short scan shows.
func hasEvents(dir string) (has bool) {
	const most = 1000
	looks := 0
	_ = fs.WalkDir(os.DirFS(dir), ".", func(_ string, d fs.DirEntry, err error) error {
		looks++
		has = err == nil && !d.IsDir() && isForeignEvents(d.Name())
		if has || looks == most {
			return fs.SkipAll
		}
		return nil
	})
	return has
}
