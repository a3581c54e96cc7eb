package integrity

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Only the program knows which files a checkpoint has. What an intact one has got,
// the next one should have, too: a process that is killed between two files leaves
// one in which each file is intact.

var digits = lazyregexp.New(`\d+`)

// passing are extensions of files that come and go.
var passing = []string{".log", ".out", ".err", ".lock", ".pid"}

// rankHead matches the end of the text before a process number: each of several processes writes
// its own file, and a checkpoint has the files of all.
var rankHead = lazyregexp.New(`(?i)(?:rank|worker|shard|proc(?:ess)?|gpu|device|node)[-_=.]?$`)

// General makes file names of different steps equal: it replaces numbers, except process
// numbers, by "#".
func General(name string) string {
	var b strings.Builder
	at := 0
	for _, number := range digits().FindAllStringIndex(name, -1) {
		b.WriteString(name[at:number[0]])
		if rankHead().MatchString(name[:number[0]]) {
			b.WriteString(name[number[0]:number[1]])
		} else {
			b.WriteByte('#')
		}
		at = number[1]
	}
	return b.String() + name[at:]
}

// Markers returns what every checkpoint of a program must have, judging by an intact
// one: the names of its parts and of the files and folders in its folders, with "#" for
// numbers other than the ranks of its parts. In folders, names with numbers are left out.
func Markers(root *os.Root, names []string) (markers []string) {
	files, err := Files(root, names)
	if err != nil {
		return nil
	}
	return namesOf(names, files)
}

// namesOf returns the general names of a checkpoint.
func namesOf(names, files []string) (all []string) {
	for _, name := range names {
		all = append(all, General(name))
		for _, file := range files {
			below, ok := strings.CutPrefix(file, name+"/")
			first, _, _ := strings.Cut(below, "/")
			if ok && !digits().MatchString(first) && !slices.Contains(passing, path.Ext(first)) {
				all = append(all, General(name)+"/"+first)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// IsOfKind reports whether the parts of a checkpoint are named like those that
// markers were made from, so that [Check] can tell whether it has everything that
// they have.
func IsOfKind(names, markers []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(markers, General(name)) })
}

// lacksMarker compares a checkpoint with an intact one. One of other names, or
// with further ones, is of another kind, and says nothing.
func lacksMarker(names, files, markers []string) error {
	if !IsOfKind(names, markers) {
		return nil
	}
	own := namesOf(names, files)
	for _, name := range markers {
		if !slices.Contains(own, name) {
			return fmt.Errorf("it has no %s, %w", name, ErrUnmarked)
		}
	}
	return nil
}
