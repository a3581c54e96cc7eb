package found

import (
	"path"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/integrity"
)

// A Moment is when a scan takes place.
type Moment struct {
	Step    int64 // of the program's last report, 0 for none
	Attempt int   // the start of the program that was under way, 0 for none
	At      time.Time
}

// date records for everything that a scan finds since when it is unchanged, and what was written
// late.
func (s *Store) date(found map[key]Checkpoint) {
	var now Moment
	if s.opts.Now != nil {
		now = s.opts.Now()
	}
	for k, c := range found {
		before, isSeen := s.seen[k]
		switch {
		case isSeen && same(before, c):
			c.still, c.first, c.begun, c.late, c.again = before.still+1, before.first, before.begun, before.late, before.again
		case !isSeen || before.begun.Attempt != now.Attempt || s.counted(k):
			c.first, c.begun = now, now // another save
			c.again = isOverwritten(before, c)
		default:
			c.first, c.begun, c.again = now, before.begun, before.again
			c.late = before.late || s.looked.Step > before.begun.Step
		}
		found[k] = c
	}
	s.looked = now
}

// isOverwritten reports whether the program has saved a second time under a name, after it had got
// further. A longer file may be the rest of the first save, and another start makes some steps
// again.
func isOverwritten(before, now Checkpoint) bool {
	const part = 10 // of the size
	isSecond := 0 < before.Reported() && before.Reported() < now.first.Step && part*(now.Size-before.Size) <= before.Size
	sameStart := now.first.Attempt > 0 && before.first.Attempt == now.first.Attempt
	return isSecond && (sameStart || 3*before.Reported() <= 2*now.first.Step)
}

// copiedUnasked is the size up to which there is a copy of a checkpoint that may be the program's only one.
const copiedUnasked = 1 << 30

// mayBeOverwritten reports whether the program may overwrite the only checkpoint that it has made
// so far: as far as reports show, the number in its name is not a step.
func (c *Checkpoint) mayBeOverwritten() bool {
	says := namedStep().MatchString(path.Base(c.files[0])) || c.countsEpochs()
	return c.Step != NoStep && !says && c.Reported() > c.Step+1 && c.Size <= copiedUnasked
}

// isProven reports whether the program has finished writing a checkpoint, as far as that can be
// known. found has all existing checkpoints.
func (s *Store) isProven(c *Checkpoint, found map[key]Checkpoint) bool {
	switch {
	case !c.last, c.record != nil:
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
