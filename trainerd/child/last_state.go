package child

import (
	"context"
	"time"
)

// mendLasts has what a kill has cut short of a program's newest state be a copy of the
// newest verified checkpoint. As in bringBack, it waits for a disk that does not take that.
func (r *run) mendLasts(ctx context.Context) {
	newest, ok := r.newest(ctx)
	if !ok {
		return // what the pattern means is moved aside as any other
	}
	for _, c := range r.store.Lasts(newest) { // which are read whole: the program does so next
		r.awaitDisk(ctx, func() bool { return !r.store.IsCut(ctx, c) || r.replaceLast(c, newest) })
	}
}

// rewindLasts takes back a program's newest state, too, where it may have been saved after
// the checkpoint that a rewind goes back to.
func (r *run) rewindLasts(to Checkpoint) {
	for _, c := range r.store.Lasts(to) {
		if c.Saved.After(to.Saved) {
			r.replaceLast(c, to)
		}
	}
}

// replaceLast puts a copy of a checkpoint in the place of a program's newest state, and
// reports whether that went well.
func (r *run) replaceLast(c, by Checkpoint) bool {
	dir, err := r.store.Replace(c, by, time.Now())
	if err != nil {
		r.log.Warn("cannot replace the program's newest state by a copy of a checkpoint", "file", c.Path, "checkpoint", by.Path, "err", err)
		return false
	}
	r.log.Warn("moved the program's newest state aside; a copy of a checkpoint is in its place", "file", c.Path, "to", dir, "checkpoint", by.Path)
	return true
}
