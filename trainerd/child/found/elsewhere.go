package found

import (
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// Elsewhere returns the newest checkpoint that an earlier run has recorded, that is still there
// and that the pattern does not mean, if it is newer than all that count: the program, or the
// config, has changed since.
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

// isOfPattern reports whether the pattern means what a record is of. It may mean only some of
// its files, as the index of a bundle.
func (s *Store) isOfPattern(r *manifest.Record) bool {
	return slices.ContainsFunc(r.Parts, s.matches)
}

// matches reports whether the pattern means a name.
func (s *Store) matches(name string) bool {
	return slices.ContainsFunc(s.parts, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// Outside returns a symbolic link that the pattern means, or leads through, and that is not
// followed since it leads out of the logdir; "" for none.
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

// leadsOut reports whether a name is that of a link that is not followed, to something.
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

// savedWith are files that a program writes together with another of a name of its framework:
// Keras' BackupAndRestore has the epoch in the second.
var savedWith = map[string]string{"latest.weights.h5": "training_metadata.json"}

// LeftOut returns the pattern that also means what is saved together with a file that the
// pattern names alone, "" if it leaves out nothing that is known.
func (s *Store) LeftOut() string {
	for _, part := range s.parts {
		other := savedWith[path.Base(part)]
		if dir := path.Dir(part); other != "" && !s.matches(path.Join(dir, other)) {
			return path.Join(dir, "{"+path.Base(part)+","+other+"}")
		}
	}
	return ""
}
