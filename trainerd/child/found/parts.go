package found

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/internal/braces"
)

// partsOf returns the alternatives of a pattern of checkpoints, such as {weights,optim}_*.npz,
// which are files of one checkpoint.
func partsOf(pattern string) []string {
	all := braces.Expand(filepath.ToSlash(pattern))
	for i, p := range all {
		all[i] = path.Clean(p)
	}
	return all
}

// lacksPart returns an error when a checkpoint has no file for one of the pattern's alternatives:
// the program was killed between two files, or is between them now.
func (s *Store) lacksPart(c Checkpoint) error {
	if s.partial || len(s.parts) < 2 {
		return nil
	}
	for _, part := range s.parts {
		if !slices.ContainsFunc(c.files, func(name string) bool { return isPart(part, name) }) {
			return fmt.Errorf("it has no %s, %w", part, integrity.ErrUnmarked)
		}
	}
	return nil
}

// isBetweenFiles reports whether the program may have written some of a checkpoint's
// files and not yet the others.
func (s *Store) isBetweenFiles(c Checkpoint) bool {
	n := len(s.known)
	fewer := n > 0 && s.known[n-1].Step < c.Step && len(c.files) < len(s.known[n-1].files)
	return fewer || s.lacksPart(c) != nil || s.isHalfReplaced(c) != nil || s.isShort(c) != nil
}

// isPart reports whether an alternative matches a file, or the bundle that it belongs to.
func isPart(part, name string) bool {
	whole, _ := path.Match(part, name)
	bundle, _ := path.Match(part, shardTail().ReplaceAllString(name, ""))
	return whole || bundle
}

var errHalfReplaced = errors.New("the file that the program writes last is still that of the save before")

// isHalfReplaced returns an error when a program that overwrites the files of its checkpoint was
// killed between two of them: each is intact, but they are not from the same save. Then the file
// that was the last to be written in the previous save has not been written in this one.
func (s *Store) isHalfReplaced(c Checkpoint) error {
	if c.Step != NoStep || c.record == nil || len(c.files) < 2 {
		return nil
	}
	var last time.Time
	for _, f := range c.record.Files {
		if f.Modified.After(last) {
			last = f.Modified
		}
	}
	replaced, kept := false, false
	for _, f := range c.record.Files {
		info, err := s.root.Lstat(f.Name)
		same := err == nil && info.Size() == f.Bytes && info.ModTime().Equal(f.Modified)
		replaced = replaced || !same && !f.Modified.Equal(last)
		kept = kept || same && f.Modified.Equal(last)
	}
	if replaced && kept {
		return errHalfReplaced
	}
	return nil
}

// nameOf returns the name of a checkpoint, like nameOf for its files; but if they have no common
// beginning, it is the file that the pattern's first alternative matches.
func (s *Store) nameOf(files []string) string {
	name := nameOf(files)
	if len(s.parts) < 2 || !slices.Contains(files, name) {
		return name
	}
	for _, part := range s.parts {
		for _, f := range files {
			if isPart(part, f) {
				return strings.TrimSuffix(f, shardTail().FindString(f))
			}
		}
	}
	return name
}

// lastStep returns the highest step among all that were found.
func lastStep(found map[key]Checkpoint) int64 {
	last := int64(NoStep)
	for k := range found {
		last = max(last, k.step)
	}
	return last
}
