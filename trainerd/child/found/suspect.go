package found

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// QuarantineSuspect moves a checkpoint with which the program fails to the damaged ones. If that fails, it
// gets its second names back. Its copy is no better, so it does not take its place; it is kept only
// because the program may fail without the checkpoint, too.
func (s *Store) QuarantineSuspect(ctx context.Context, c Checkpoint, now time.Time) (Moved, error) {
	s.withheld[c.key()] = s.isCopied(c)
	m, err := s.Quarantine(ctx, c, now)
	if err != nil {
		delete(s.withheld, c.key())
		m.Misnamed = errors.Join(m.Misnamed, s.pointBack(m.names, c))
		return m, err
	}
	s.Drop(c)
	s.sizes = sizesOf(s.known) // without its own
	return m, nil
}

// isCopied reports whether a checkpoint's copy has its present files.
func (s *Store) isCopied(c Checkpoint) bool {
	r := s.records[c.key()]
	if copied(r) == "" {
		return false
	}
	files, err := integrity.Files(s.root, c.files)
	return err == nil && r.Compare(s.root, files) == nil
}

// PutBack moves a checkpoint from the damaged ones to where it was, and gives it its second names
// back. It reports whether the checkpoint is in place; if not, all of it stays among the damaged
// ones, as far as the disk permits, and PutBack may be called again.
func (s *Store) PutBack(m Moved) (back bool, err error) {
	files := make([]string, len(m.of.files))
	for i, name := range m.of.files {
		files[i] = s.abs(name)
	}
	if err := checkpoint.MoveBack(s.disk, m.Dir, files); err != nil {
		return false, err
	}
	delete(s.withheld, m.of.key())
	return true, errors.Join(s.removeAll(m.Dir), s.disk.SyncDir(filepath.Dir(m.Dir)), s.pointBack(m.names, m.of))
}

// pointBack gives a checkpoint its second names back.
func (s *Store) pointBack(names []alias, c Checkpoint) error {
	var errs []error
	for _, a := range names {
		errs = append(errs, s.point(a, c))
	}
	return errors.Join(errs...)
}
