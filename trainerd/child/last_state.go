package child

import (
	"context"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
)

// repairLatest replaces a program's newest state that a kill has cut short by a copy of the newest
// verified checkpoint. Like bringBack, it waits if the disk refuses that.
func (r *run) repairLatest(ctx context.Context) {
	newest, ok := r.newest(ctx)
	if !ok {
		return // what the pattern means is moved aside as any other
	}
	for _, c := range r.store.LatestStates(newest) { // which are read whole: the program does so next
		r.awaitDisk(ctx, func() bool {
			if !r.store.IsDamaged(ctx, c) {
				return true
			}
			_, ok := r.replaceLast(c, newest)
			return ok
		})
	}
}

// rewindLatest also replaces a program's newest state if it may have been saved after the checkpoint
// that a rewind goes back to.
func (r *run) rewindLatest(to Checkpoint) {
	for _, c := range r.store.LatestStates(to) {
		if c.Saved.After(to.Saved) {
			r.replaceLast(c, to)
		}
	}
}

// quarantineLatest is quarantineSuspect for a program's newest state, if that was written after the checkpoint
// of this start, and no start has continued since: it may be what makes the program fail.
func (r *run) quarantineLatest() bool {
	given := *r.attempt.given
	for _, c := range r.store.LatestStates(given) {
		isText := filepath.Ext(c.Path) == "" // which names a checkpoint
		if isText || !c.Saved.After(given.Saved) || !c.Saved.After(r.continued) || r.store.IsWhole(c) {
			continue
		}
		r.log.Warn("the program has failed twice, perhaps with its newest state, which it may not have finished", "file", c.Path)
		if m, ok := r.replaceLast(c, given); ok {
			r.suspect = &suspect{c, m}
			r.counts.update(func(c *counts) { c.stats.Rewinds++ })
			return true
		}
	}
	return false
}

// replaceLast puts a copy of a checkpoint in the place of a program's newest state, and reports
// whether that succeeded.
func (r *run) replaceLast(c, by Checkpoint) (m found.Moved, ok bool) {
	m, err := r.store.Replace(c, by, time.Now())
	if err != nil {
		r.log.Warn("cannot replace the program's newest state by a copy of a checkpoint", "file", c.Path, "checkpoint", by.Path, "err", err)
		return m, false
	}
	r.log.Warn("moved the program's newest state aside; a copy of a checkpoint is in its place", "file", c.Path, "to", m.Dir, "checkpoint", by.Path)
	return m, true
}
