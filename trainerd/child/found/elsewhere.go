package found

import (
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// Elsewhere returns the newest checkpoint that an earlier run has recorded, that still exists and
// that the pattern does not match, if it is newer than all that count: the program, or the config,
// has changed since.
func (s *Store) Elsewhere() (newest Checkpoint, ok bool) {
	if n := len(s.known); n > 0 {
		newest = s.known[n-1]
	}
	for _, r := range s.records {
		if r == nil || s.isOfPattern(r) || !slices.ContainsFunc(r.Parts, s.isThere) {
			continue
		}
		c := Checkpoint{Path: s.abs(r.Name), Step: r.Step, Saved: r.WallTime, files: r.Parts, reused: s.reused}
		if newest.Path == "" || c.IsNewer(&newest) {
			newest, ok = c, true
		}
	}
	return newest, ok
}

// isOfPattern reports whether the pattern matches a record's checkpoint. It may match only some of
// its files, such as the index of a bundle.
func (s *Store) isOfPattern(r *manifest.Record) bool {
	return slices.ContainsFunc(r.Parts, s.matches)
}

// matches reports whether the pattern matches a name.
func (s *Store) matches(name string) bool {
	return slices.ContainsFunc(s.parts, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// Outside returns a symbolic link that the pattern matches, or leads through, and that is not
// followed because it leads out of the logdir; "" for none.
func (s *Store) Outside() string {
	for _, pattern := range s.parts {
		for ; pattern != "."; pattern = path.Dir(pattern) {
			names, _ := fs.Glob(s.root.FS(), pattern)     // CheckPattern has seen it
			for _, name := range append(names, pattern) { // what has no * is not listed, if it is such a link
				if s.leadsOut(name) {
					return s.abs(name)
				}
			}
		}
	}
	return ""
}

// leadsOut reports whether a name is a link to something existing that is not followed.
func (s *Store) leadsOut(name string) bool {
	info, err := s.root.Lstat(name)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	if _, err := s.root.Stat(name); err == nil {
		return false
	}
	_, err = os.Stat(s.abs(name))
	return err == nil
}

// savedWith maps file names of frameworks to files that belong to them: Keras' BackupAndRestore
// keeps the epoch in the second file.
var savedWith = map[string]string{"latest.weights.h5": "training_metadata.json"}

// LeftOut returns the pattern extended by a file that is known to be saved together with the file
// that the pattern names, or "" if nothing known is left out.
func (s *Store) LeftOut() string {
	for _, part := range s.parts {
		other := savedWith[path.Base(part)]
		if dir := path.Dir(part); other != "" && !s.matches(path.Join(dir, other)) {
			return path.Join(dir, "{"+path.Base(part)+","+other+"}")
		}
	}
	return ""
}
