package child

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
)

// How long to wait before a copy that the disk has refused is tried again.
const (
	firstBringBack = time.Second
	lastBringBack  = 20 * time.Second
)

// bringBack puts the copy of a checkpoint that the program overwrites in its place. If the disk
// refuses it, it waits: otherwise the program would train from the beginning, and finally replace
// the checkpoint. Meanwhile the run handles requests, as between two starts.
func (r *run) bringBack(ctx context.Context, c Checkpoint) {
	r.awaitDisk(ctx, func() bool { return r.tryBringBack(ctx, c) })
}

// awaitDisk tries something until the disk accepts it, or the run has to end.
func (r *run) awaitDisk(ctx context.Context, try func() bool) {
	for pause := firstBringBack; !try(); pause = min(2*pause, lastBringBack) {
		if r.wait(ctx, pause); ctx.Err() != nil || r.lost != nil {
			return
		}
	}
}

// tryBringBack reports false for a copy that is not damaged and cannot be brought back.
func (r *run) tryBringBack(ctx context.Context, c Checkpoint) bool {
	r.endRefresh() // which may be about the same files
	restored, again, err := r.store.BringBack(ctx, c)
	if err != nil {
		r.log.Warn("cannot bring back the copy of the checkpoint", "checkpoint", c.Path, "err", err)
	}
	if restored {
		r.log.Warn("brought back the last verified copy of the checkpoint", "checkpoint", c.Path)
		_, bad := r.store.Refresh(true)
		r.skip(bad)
	}
	return !again
}

// bringBackGone puts the copy of the program's only checkpoint in its place when that is missing.
func (r *run) bringBackGone(ctx context.Context) {
	for _, c := range r.store.Gone() {
		r.log.Warn("the checkpoint is gone; the program was killed before it had written the next", "checkpoint", c.Path)
		r.bringBack(ctx, c)
	}
}

// bringBackLost puts the copy of the program's only checkpoint in its place if the disk has failed
// to store what overwrote it.
func (r *run) bringBackLost(ctx context.Context) {
	for _, c := range r.store.Lost() {
		r.bringBack(ctx, c)
	}
}

// quarantineDamaged moves damaged checkpoints aside before a start. It tries again if the disk
// fails: a program that picks its newest checkpoint would begin with the damaged one.
func (r *run) quarantineDamaged(ctx context.Context) {
	if !r.moveDamaged(ctx) {
		r.wait(ctx, firstBringBack)
		r.endRefresh()
		_, bad := r.store.Refresh(true) // a part of one may have been moved
		r.skip(bad)
		r.moveDamaged(ctx)
	}
	if err := r.store.Correct(); err != nil {
		r.log.Warn("cannot correct what names a checkpoint that was moved aside", "err", err)
	}
}

// moveDamaged reports whether all were moved.
func (r *run) moveDamaged(ctx context.Context) (all bool) {
	all = true
	for _, c := range r.store.NewestDamaged() {
		m, err := r.store.Quarantine(ctx, c, time.Now())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			all = false
			r.log.Warn("cannot move damaged checkpoint aside", "checkpoint", c.Path, "err", err)
		default:
			r.log.Warn("moved damaged checkpoint aside", "checkpoint", c.Path, "to", m.Dir)
			r.bringBack(ctx, c)
		}
		r.warnMisnamed(c, m)
	}
	r.bringBackGone(ctx) // what was moved may have been all that a move which failed had left of one
	return all
}

// warnMisnamed logs that something still names a checkpoint which was moved aside.
func (r *run) warnMisnamed(c Checkpoint, m found.Moved) {
	if m.Misnamed != nil {
		r.log.Warn("cannot correct what names the damaged checkpoint", "checkpoint", c.Path, "err", m.Misnamed)
	}
}
