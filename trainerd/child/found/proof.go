package found

import (
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// A Moment is when a look takes place.
type Moment struct {
	Step    int64 // of the program's last report, 0 for none
	Attempt int   // the start of the program that was under way, 0 for none
	At      time.Time
}

// isProven reports whether the program has finished writing a checkpoint, as far as
// that can be known. found are all that there are.
func (s *Store) isProven(c *Checkpoint, found map[key]Checkpoint) bool {
	switch {
	case s.opts.IsPast == nil, c.record != nil, s.opts.IsPast(c):
		return true
	case s.maybeShort(c):
		return false
	case integrity.IsSealed(s.root, c.files), integrity.IsOfKind(c.files, s.markers):
		return true
	}
	names := integrity.Markers(s.root, c.files)
	for k, other := range found {
		if k != c.key() && slices.Equal(integrity.Markers(s.root, other.files), names) {
			return true
		}
	}
	return false
}
