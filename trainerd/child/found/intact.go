package found

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// Intact returns what the program, which has ended, has saved and what is not verified yet, if all
// of it is intact; it may not be durable. It is not ok if something is damaged, gone, on trial, or
// has to be repaired before another start: Refresh finds that out.
//
// Another goroutine may be in Verify meanwhile.
func (s *Store) Intact(ctx context.Context) (all []Checkpoint, ok bool) {
	all = s.Candidates(true)
	if len(slices.Concat(s.NewestDamaged(), s.Gone(), s.Lost(), s.misnamed)) > 0 {
		return nil, false
	}
	markers := s.markersFor(all)
	for i := range all {
		all[i].untried = !s.hasContinuedFrom(&all[i])
		if all[i].OnTrial || s.lacksFile(all[i]) || s.inspect(ctx, all[i], markers, nil) != nil {
			return nil, false
		}
	}
	return all, true
}

// Unverified returns those of some checkpoints that nothing is known about yet.
func (s *Store) Unverified(all []Checkpoint) []Checkpoint {
	return slices.DeleteFunc(slices.Clone(all), func(c Checkpoint) bool { return s.isKnown(c.key()) || s.isRefused(c) })
}

// inspect reads a checkpoint, through what a function returns, and looks for damage.
func (s *Store) inspect(ctx context.Context, c Checkpoint, markers []string, through func(name string, f *os.File) io.ReaderAt) error {
	if c.Size == 0 {
		return errEmpty
	}
	if err := integrity.CheckThrough(ctx, s.root, c.files, markers, through); err != nil {
		return err
	}
	return cmp.Or(s.lacksPart(c), s.isHalfReplaced(c), s.isShort(c))
}

// lacksFile reports whether a file is gone that the record of a checkpoint has, and the others are as they were.
func (s *Store) lacksFile(c Checkpoint) bool {
	files, err := integrity.Files(s.root, c.files)
	if err != nil || c.record == nil {
		return err != nil
	}
	err = c.record.Compare(s.root, files)
	return err != nil && !errors.Is(err, manifest.ErrOutdated)
}
