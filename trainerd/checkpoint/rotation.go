package checkpoint

import (
	"fmt"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// rotation is the list of checkpoints that a Saver manages, oldest first. Those that drop out of
// the list are deleted, or preserved permanently. The zero rotation is empty.
type rotation struct {
	kept []stored
	// lastPreserved is the point of the keep-every grid that has passed: the
	// next checkpoint to be preserved is younger than lastPreserved + every.
	lastPreserved time.Time
	// outside are the checkpoints of this run that stay without being in the
	// list, for the report.
	outside []Kept
}

// stored is a checkpoint in a rotation. Its prefix is absolute.
type stored struct {
	prefix  string
	step    int64 // of the model, as its manifest has it
	saved   time.Time
	metrics Measurements
	pinned  bool // as the log has said, when it was to be deleted
}

func (k stored) stored() retention.Checkpoint {
	c := retention.Checkpoint{Prefix: k.prefix, Step: stepOf(k.prefix), Saved: k.saved}
	c.Metrics, c.Sources = k.metrics.Of(k.step)
	return c
}

func storedOf(all []stored) []retention.Checkpoint {
	stored := make([]retention.Checkpoint, len(all))
	for i, k := range all {
		stored[i] = k.stored()
	}
	return stored
}

// put puts a checkpoint in the newest place, even if it was in the list.
func (r *rotation) put(c stored) {
	r.kept = slices.DeleteFunc(r.kept, func(k stored) bool { return k.prefix == c.prefix })
	r.kept = append(r.kept, c)
	r.outside = withoutPrefix(r.outside, c.prefix)
}

// keepForever records that a checkpoint stays without being in the list.
func (r *rotation) keepForever(c stored, why string) {
	r.outside = append(withoutPrefix(r.outside, c.prefix), Kept{c.stored(), []string{why}})
}

// withoutPrefix returns a list without a checkpoint.
func withoutPrefix(all []Kept, prefix string) []Kept {
	return slices.DeleteFunc(all, func(k Kept) bool { return k.Prefix == prefix })
}

// retain puts a checkpoint in the newest place and returns those that no policy
// keeps any longer.
func (r *rotation) retain(c stored, policies []retention.Policy) (evicted []stored) {
	r.put(c)
	why := Reasons(policies, storedOf(r.kept))
	kept := r.kept[:0:0]
	for i, k := range r.kept {
		if len(why[i]) > 0 {
			kept = append(kept, k)
		} else {
			evicted = append(evicted, k)
		}
	}
	r.kept = kept
	return evicted
}

// add puts a checkpoint in the newest place, even if it was in the list, and returns those that
// drop out: all that exceed the limit, so that a smaller limit takes effect at once. A limit below
// zero means no limit, and keeps no list.
func (r *rotation) add(c stored, limit int, every time.Duration) (evicted []stored) {
	if limit < 0 {
		r.keepForever(c, "all are kept")
		return nil
	}
	r.agree(c.saved)
	r.put(c)
	for len(r.kept) > limit {
		oldest := r.kept[0]
		r.kept = slices.Delete(r.kept, 0, 1)
		if r.preserve(oldest, every) {
			r.keepForever(oldest, fmt.Sprintf("one every %v", every))
		} else {
			evicted = append(evicted, oldest)
		}
	}
	return evicted
}

// agree corrects times that are later than now because the clock was set back since. Otherwise
// nothing would be preserved until the clock reaches them again. The distances between past saves
// are kept.
func (r *rotation) agree(now time.Time) {
	bound, shift := now, time.Duration(0)
	if !r.lastPreserved.After(now) && !slices.ContainsFunc(r.kept, func(k stored) bool { return k.saved.After(now) }) {
		return
	}
	for i := len(r.kept) - 1; i >= 0; i-- {
		at := r.kept[i].saved.Add(-shift)
		if late := at.Sub(bound); late > 0 {
			shift += late
			at = bound
		}
		r.kept[i].saved, bound = at, at
	}
	r.lastPreserved = r.lastPreserved.Add(-shift)
	if r.lastPreserved.After(now) {
		r.lastPreserved = now
	}
}

// preserve reports whether a checkpoint that dropped out of the list is preserved by the keep-every
// grid, and if so moves on to the grid's next point.
func (r *rotation) preserve(c stored, every time.Duration) bool {
	if every <= 0 || !c.saved.After(r.lastPreserved.Add(every)) {
		return false
	}
	for c.saved.After(r.lastPreserved.Add(every)) { // again only where Sub gives the longest Duration
		points := (c.saved.Sub(r.lastPreserved) - 1) / every
		r.lastPreserved = r.lastPreserved.Add(points * every)
	}
	return true
}

// listed returns what the `checkpoint` file lists: the rotation, with the current checkpoint in its
// place by time, because a restart tries those before it next. The file ends with the current one,
// as TensorFlow's does, even if it is in the list already.
func (r *rotation) listed(current stored) []stored {
	all := slices.Clone(r.kept)
	if !slices.ContainsFunc(all, func(k stored) bool { return k.prefix == current.prefix }) {
		at := slices.IndexFunc(all, func(k stored) bool { return k.saved.After(current.saved) })
		if at < 0 {
			at = len(all)
		}
		all = slices.Insert(all, at, current)
	}
	if all[len(all)-1].prefix != current.prefix {
		all = append(all, current)
	}
	return all
}
