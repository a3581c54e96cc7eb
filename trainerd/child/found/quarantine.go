package found

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// Moved describes how a checkpoint was moved out of the way.
type Moved struct {
	Dir      string // where it is
	Misnamed error  // why what named it does not all name another one

	of    Checkpoint
	names []alias // that it had
}

// Quarantine moves a damaged checkpoint out of the way of a program that picks its newest one by
// itself. Files and links that name it are first changed to name another one, so that a kill in
// between leaves none that leads nowhere. It must not be called while the program runs.
func (s *Store) Quarantine(ctx context.Context, c Checkpoint, now time.Time) (m Moved, err error) {
	m.of, m.names = c, s.aliases(c)
	if r := s.records[c.key()]; !s.withheld[c.key()] && s.hasCopy(ctx, r) {
		m.Misnamed = s.keep(m.names, r)
	} else {
		m.Misnamed = s.repoint(c, m.names)
	}
	files := make([]string, len(c.files))
	for i, name := range c.files {
		files[i] = s.abs(name)
	}
	if m.Dir, err = checkpoint.MoveAside(s.disk, s.root.Name(), filepath.Base(c.Path), files, now); err != nil {
		return m, err
	}
	delete(s.refused, c.key())
	delete(s.seen, c.key())
	s.misnamed = append(s.misnamed, c) // until it is known that it is not
	return m, nil
}

// hasCopy reports whether a record has a copy that is intact, or cannot be read now.
func (s *Store) hasCopy(ctx context.Context, r *manifest.Record) bool {
	if copied(r) == "" {
		return false
	}
	err := r.VerifyCopy(ctx, s.root)
	return err == nil || !(Rejected{err: err}).Damaged() && !isGoneFile(err)
}

// Correct changes files and links that still name checkpoints which were moved aside: the disk may
// have refused that before, or their copies are damaged, too.
func (s *Store) Correct() error {
	var errs []error
	s.misnamed = slices.DeleteFunc(s.misnamed, func(c Checkpoint) bool {
		if _, err := s.root.Lstat(c.files[0]); err == nil {
			return true // it is back
		}
		if copied(s.records[c.key()]) != "" && !s.withheld[c.key()] {
			return false // it will be
		}
		err := s.repoint(c, s.aliases(c))
		errs = append(errs, err)
		return err == nil
	})
	return errors.Join(errs...)
}

// means reports whether the pattern matches all of the names.
func (s *Store) means(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !s.matches(name) })
}

// NewestDamaged returns the damaged checkpoints that are newer than all verified
// ones, or were written after them.
func (s *Store) NewestDamaged() (all []Checkpoint) {
	for _, b := range s.refused {
		if _, err := s.root.Lstat(b.files[0]); err != nil || !b.Damaged() {
			continue
		}
		n := len(s.known)
		isLater := func(c Checkpoint) bool { return !c.Saved.Before(b.Saved) } // numbers need not rise
		if n == 0 || b.IsNewer(&s.known[n-1]) || !slices.ContainsFunc(s.known, isLater) {
			all = append(all, b.Checkpoint)
		}
	}
	return all
}
