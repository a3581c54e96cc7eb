package child

import (
	"context"
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// moved says what became of a checkpoint that was moved out of the way.
type moved struct {
	dir      string  // where it is
	names    []alias // that it had
	misnamed error   // why they do not all name another one
}

// quarantine moves a damaged checkpoint out of the way of a program that picks its
// newest one by itself. What names it names another one before that, so that a kill in
// between leaves nothing that leads nowhere. It must not be called while the program runs.
func (s *checkpointStore) quarantine(ctx context.Context, c Checkpoint, now time.Time) (m moved, err error) {
	m.names = s.aliases(c)
	if r := s.records[c.key()]; s.hasCopy(ctx, r) {
		m.misnamed = s.keep(m.names, r)
	} else {
		m.misnamed = s.repoint(c, m.names)
	}
	files := make([]string, len(c.files))
	for i, name := range c.files {
		files[i] = s.abs(name)
	}
	if m.dir, err = checkpoint.MoveAside(s.disk, s.root.Name(), filepath.Base(c.Path), files, now); err != nil {
		return m, err
	}
	delete(s.refused, c.key())
	delete(s.seen, c.key())
	s.misnamed = append(s.misnamed, c) // until it is known that it is not
	return m, nil
}

// hasCopy reports whether a record has a copy that is intact, or cannot be read now.
func (s *checkpointStore) hasCopy(ctx context.Context, r *manifest.Record) bool {
	if copied(r) == "" {
		return false
	}
	err := r.VerifyCopy(ctx, s.root)
	return err == nil || !(rejected{err: err}).damaged() && !isGoneFile(err)
}

// correct has what still names checkpoints that were moved aside name others: the disk may not
// have taken that before, or their copies are damaged, too.
func (s *checkpointStore) correct() error {
	var errs []error
	s.misnamed = slices.DeleteFunc(s.misnamed, func(c Checkpoint) bool {
		if _, err := s.root.Lstat(c.files[0]); err == nil {
			return true // it is back
		}
		if copied(s.records[c.key()]) != "" {
			return false // it will be
		}
		err := s.repoint(c, s.aliases(c))
		errs = append(errs, err)
		return err == nil
	})
	return errors.Join(errs...)
}

// How long a disk that does not take a copy back is left alone before it is asked again.
const (
	firstBringBack = time.Second
	lastBringBack  = 20 * time.Second
)

// bringBack gives a program that overwrites its checkpoint the copy of it. It waits for a
// disk that does not take that: the program would begin from the beginning, and in the end
// overwrite what the copy is of. Meanwhile the run does what it is asked, as between two starts.
func (r *run) bringBack(ctx context.Context, c Checkpoint) {
	r.awaitDisk(ctx, func() bool { return r.tryBringBack(ctx, c) })
}

// awaitDisk tries something until the disk takes it, or the run is to end.
func (r *run) awaitDisk(ctx context.Context, try func() bool) {
	for pause := firstBringBack; !try(); pause = min(2*pause, lastBringBack) {
		if r.wait(ctx, pause); ctx.Err() != nil || r.lost != nil {
			return
		}
	}
}

// tryBringBack reports false for a copy that is not damaged and cannot be brought back.
func (r *run) tryBringBack(ctx context.Context, c Checkpoint) bool {
	restored, needed, err := r.store.restore(ctx, r.store.records[c.key()])
	if !needed {
		err = errors.Join(err, r.store.forget(c))
	}
	if err != nil {
		r.log.Warn("cannot bring back the copy of the checkpoint", "checkpoint", c.Path, "err", err)
	}
	if restored {
		r.log.Warn("brought back the last verified copy of the checkpoint", "checkpoint", c.Path)
		_, bad := r.store.refresh(true)
		r.skip(bad)
	}
	return !needed
}

// bringBackGone gives a program its only checkpoint back, which is not there: it was
// killed after it had removed that, and before the next was complete.
func (r *run) bringBackGone(ctx context.Context) {
	if len(r.store.seen) > 0 {
		return
	}
	for _, record := range maps.Clone(r.store.records) {
		if record == nil || record.Copy == "" || !r.store.means(record.Parts) {
			continue
		}
		c := Checkpoint{Path: r.store.abs(record.Name), Step: record.Step, files: record.Parts}
		r.log.Warn("the checkpoint is gone; the program was killed before it had written the next", "checkpoint", c.Path)
		r.bringBack(ctx, c)
	}
}

// bringBackLost gives a program its only checkpoint back if the disk has not taken what it
// was overwritten with.
func (r *run) bringBackLost(ctx context.Context) {
	if len(r.store.known) > 0 {
		return
	}
	for k, b := range maps.Clone(r.store.refused) {
		if b.lost() && same(r.store.seen[k], b.Checkpoint) && copied(r.store.records[k]) != "" {
			r.bringBack(ctx, b.Checkpoint)
		}
	}
}

// means reports whether the pattern means all of some names.
func (s *checkpointStore) means(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(s.parts, func(pattern string) bool {
			ok, _ := path.Match(pattern, name)
			return ok
		})
	})
}

// newestDamaged returns the damaged checkpoints that are newer than all verified
// ones.
func (s *checkpointStore) newestDamaged() (all []Checkpoint) {
	for _, b := range s.refused {
		if _, err := s.root.Lstat(b.files[0]); err != nil || !b.damaged() {
			continue
		}
		if n := len(s.known); n == 0 || isNewer(b.Checkpoint, s.known[n-1]) {
			all = append(all, b.Checkpoint)
		}
	}
	return all
}

// isNewer compares checkpoints by their steps, or by time where one has none.
func isNewer(a, b Checkpoint) bool {
	if a.Step == NoStep || b.Step == NoStep {
		return a.Saved.After(b.Saved)
	}
	return a.Step > b.Step
}

// quarantineDamaged moves damaged checkpoints aside before a start. A disk that has failed once
// is asked again: a program that picks its newest checkpoint would begin with the damaged one.
func (r *run) quarantineDamaged(ctx context.Context) {
	if !r.moveDamaged(ctx) {
		r.wait(ctx, firstBringBack)
		_, bad := r.store.refresh(true) // a part of one may have been moved
		r.skip(bad)
		r.moveDamaged(ctx)
		r.bringBackGone(ctx)
	}
	if err := r.store.correct(); err != nil {
		r.log.Warn("cannot correct what names a checkpoint that was moved aside", "err", err)
	}
}

// moveDamaged reports whether the disk has taken all.
func (r *run) moveDamaged(ctx context.Context) (all bool) {
	all = true
	moved := false
	for _, c := range r.store.newestDamaged() {
		m, err := r.store.quarantine(ctx, c, time.Now())
		switch {
		case isGoneFile(err):
			continue
		case err != nil:
			all = false
			r.log.Warn("cannot move damaged checkpoint aside", "checkpoint", c.Path, "err", err)
		default:
			moved = true
			r.log.Warn("moved damaged checkpoint aside", "checkpoint", c.Path, "to", m.dir)
			r.bringBack(ctx, c)
		}
		r.warnMisnamed(c, m)
	}
	if moved { // it may have been what a move that failed had left of one of several files
		r.bringBackGone(ctx)
	}
	return all
}

// warnMisnamed logs that something still names a checkpoint which was moved aside.
func (r *run) warnMisnamed(c Checkpoint, m moved) {
	if m.misnamed != nil {
		r.log.Warn("cannot correct what names the damaged checkpoint", "checkpoint", c.Path, "err", m.misnamed)
	}
}
