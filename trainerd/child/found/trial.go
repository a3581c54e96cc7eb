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

// date notes of all that a look finds since when it is as it is, and what is written late.
func (s *Store) date(found map[key]Checkpoint) {
	var now Moment
	if s.opts.Now != nil {
		now = s.opts.Now()
	}
	for k, c := range found {
		before, isSeen := s.seen[k]
		switch {
		case isSeen && same(before, c):
			c.still, c.first, c.begun, c.late = before.still+1, before.first, before.begun, before.late
		case !isSeen || before.begun.Attempt != now.Attempt || s.counted(k):
			c.first, c.begun = now, now // another save
		default:
			c.first, c.begun = now, before.begun
			c.late = before.late || s.looked.Step > before.begun.Step
		}
		found[k] = c
	}
	s.looked = now
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
