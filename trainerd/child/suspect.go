package child

import (
	"math"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
)

// suspect is a checkpoint that was moved to the damaged ones because the program failed with it. The
// next start, without it, shows whether it was to blame.
type suspect struct {
	Checkpoint
	found.Moved
}

// quarantineSuspect moves a checkpoint with which the program fails to the damaged ones, if it may be
// unfinished: the program has done nothing since it was written. Everything that can be checked in
// such files may be intact.
func (r *run) quarantineSuspect(c Checkpoint) {
	m, err := r.store.QuarantineSuspect(r.ectx, c, time.Now())
	r.warnMisnamed(c, m)
	if err != nil {
		r.log.Warn("cannot move damaged checkpoint aside", "checkpoint", c.Path, "err", err)
		return
	}
	r.suspect = &suspect{c, m}
	next := "the beginning"
	if older, ok := r.usable(); ok {
		next = older.Path
	}
	r.log.Warn("the program has failed twice with a checkpoint that it may not have finished; moved it aside", "checkpoint", c.Path, "to", m.Dir, "next", next)
	r.counts.update(func(c *counts) { c.stats.Rewinds++ })
}

// putBack undoes what quarantineSuspect did, because the program has not come further without the
// checkpoint. If the disk refuses that, it is tried again after the next start.
func (r *run) putBack() {
	a := r.suspect
	back, err := r.store.PutBack(a.Moved)
	if err != nil {
		r.log.Error("cannot move the checkpoint back", "checkpoint", a.Path, "from", a.Dir, "err", err)
	} else {
		r.log.Warn("the program has done no step without the checkpoint; moved it back", "checkpoint", a.Path)
	}
	r.refresh(true)
	if back {
		r.markTried(math.MaxInt64)
	}
}

// markTried records that the program has done something since its newest checkpoints, so that it has
// finished them. If it has done so without a checkpoint that was set aside, that one was to blame.
func (r *run) markTried(step int64) {
	r.suspect = nil
	r.store.MarkTried(step, r.attempts)
}
