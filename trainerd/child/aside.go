package child

import (
	"errors"
	"path/filepath"
	"strconv"
	"time"
)

// aside is a checkpoint that was moved to the damaged ones because the program failed
// with it. Whether it was to blame shows the next start, which does without it.
type aside struct {
	Checkpoint
	moved
}

// setAside moves a checkpoint to the damaged ones with which the program fails, and
// which it may not have finished: the program has done nothing since it was written.
// All that can be seen of such files may be intact.
func (r *run) setAside(c Checkpoint) {
	m, err := r.store.quarantine(r.ectx, c, time.Now())
	r.warnMisnamed(c, m)
	if err != nil {
		r.warnMisnamed(c, moved{misnamed: r.store.pointBack(m.names, c)})
		r.log.Warn("cannot move damaged checkpoint aside", "checkpoint", c.Path, "err", err)
		return
	}
	r.store.drop(c)
	r.store.sizes = sizesOf(r.store.known) // without its own
	r.aside = &aside{c, m}
	next := "the beginning"
	if older, ok := r.store.newest(noCeiling); ok {
		next = older.Path
	}
	r.log.Warn("the program has failed twice with a checkpoint that it may not have finished; moved it aside", "checkpoint", c.Path, "to", m.dir, "next", next)
	r.counts.update(func(c *counts) { c.stats.Rewinds++ })
}

// putBack takes back what setAside did: without the checkpoint, the program has not
// come further.
func (r *run) putBack() {
	a := r.aside
	if err := r.store.putBack(a); err != nil {
		r.log.Error("cannot move the checkpoint back", "checkpoint", a.Path, "from", a.dir, "err", err)
	} else {
		r.log.Warn("the program has done no step without the checkpoint; moved it back", "checkpoint", a.Path)
	}
	r.refresh(true)
	r.trust()
}

// putBack moves a checkpoint from the damaged ones to where it was, and gives it its
// second names back.
func (s *checkpointStore) putBack(a *aside) error {
	var errs []error
	taken := map[string]bool{}
	for i, name := range a.files {
		base := filepath.Base(name)
		from := filepath.Join(a.dir, base)
		if taken[base] { // as checkpoint.MoveAside names it
			from = filepath.Join(a.dir, strconv.Itoa(i), base)
		}
		taken[base] = true
		errs = append(errs, s.disk.Rename(from, s.abs(name)), s.disk.SyncDir(filepath.Dir(s.abs(name))))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	errs = []error{s.removeAll(a.dir), s.disk.SyncDir(filepath.Dir(a.dir))}
	return errors.Join(append(errs, s.pointBack(a.names, a.Checkpoint))...)
}

// pointBack gives a checkpoint its second names back.
func (s *checkpointStore) pointBack(names []alias, c Checkpoint) error {
	var errs []error
	for _, a := range names {
		errs = append(errs, s.point(a, c))
	}
	return errors.Join(errs...)
}

// trust notes that the program has done something since its newest checkpoints: it
// has finished them. What was set aside was to blame if it has done so without.
func (r *run) trust() {
	r.aside = nil
	known := r.store.known
	for i := len(known) - 1; i >= 0 && known[i].untried; i-- {
		known[i].untried = false
	}
}
