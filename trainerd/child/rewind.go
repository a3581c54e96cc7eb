package child

import (
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// rewinds is what a run remembers about losses that were NaN or infinite.
type rewinds struct {
	given   string    // the path of the checkpoint of this start, "" for none
	good    int64     // step of the last finite loss, -1 before the first
	goodAt  time.Time // when that was reported, by the clock of the program
	proven  bool      // that was since this start: the checkpoint it was given is good
	count   int       // of rewinds in a row
	failed  int64     // step of the last failure
	further int       // checkpoints to skip
}

// begin prepares for a start from a checkpoint, whose loss was finite as far as is
// known; nil for none.
func (b *rewinds) begin(given *Checkpoint) {
	b.given, b.good, b.proven = "", -1, false
	if given != nil {
		b.given, b.good, b.goodAt = given.Path, given.At(), given.Saved
	}
}

// trusts reports whether a finite loss has come after a checkpoint. If its name does not have a
// step as reported, it may be of a step that had not been reported when it was found.
func (b *rewinds) trusts(c *Checkpoint) bool {
	switch at := c.At(); {
	case c.Path != "" && c.Path == b.given:
		return true
	case at == found.NoStep:
		return !c.Saved.After(b.goodAt)
	case c.CountsSteps():
		return at <= b.good
	}
	return c.Reported() < b.good || !c.Saved.After(b.goodAt)
}

// isOdd reports whether a checkpoint was saved after the newest finite loss although its step is
// earlier: in the background, or by a program that has begun again and has reported nothing since.
func (b *rewinds) isOdd(c *Checkpoint) bool {
	return c.CountsSteps() && c.Path != b.given && c.At() < b.good && c.Saved.After(b.goodAt)
}

// spared returns the checkpoints that a rewind may need: the newest one that a finite loss has
// followed and, until this start has reported such a loss, the one before it, because the program
// may have been killed before it reported that the loss was NaN. If all of them are odd, there is
// one more.
func (r *run) spared() (paths []string) {
	n, sure := 2, false
	if r.rewinds.proven {
		n = 1
	}
	for _, c := range slices.Backward(r.store.Known()) {
		if odd := r.rewinds.isOdd(&c); !c.OnTrial && r.rewinds.trusts(&c) && (len(paths) < n || !sure && !odd) {
			paths, sure = append(paths, c.Path), sure || !odd
		}
	}
	return paths
}

// watchLoss kills the program when its loss is NaN or infinite: from then on its work is useless,
// and what it saves does harm.
func (r *run) watchLoss(report *Report, now time.Time) {
	v, ok := r.lossOf(report)
	if r.MaxRewinds <= 0 || !ok || r.attempt.ending != nil {
		return
	}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		if report.Step > r.rewinds.failed { // it got past the place
			r.rewinds.count, r.rewinds.further = 0, 0
		}
		r.rewinds.good, r.rewinds.goodAt, r.rewinds.proven = report.Step, now, true
		if at := report.Time; !at.IsZero() && at.Before(now) { // it may have been on its way for long
			r.rewinds.goodAt = at
		}
		return
	}
	r.attempt.nan = &trainerd.NaNError{Step: report.Step, Loss: v}
	r.attempt.ending = &ending{begun: now, stage: killed}
	r.killAll()
}

// lossOf returns the loss in a report.
func (sv *Supervisor) lossOf(report *Report) (v float64, ok bool) {
	if sv.Loss == "" {
		return report.Loss()
	}
	return report.Value(sv.Loss)
}

// rewind moves the checkpoints aside that may have been saved after the fault, so that the
// next start, even of a later run, continues from an earlier one. The error is the
// [*trainerd.NaNError] if there is none, or the limit is reached.
func (r *run) rewind() error {
	b, nan := &r.rewinds, r.attempt.nan
	intact := slices.DeleteFunc(slices.Clone(r.store.Known()), func(c Checkpoint) bool { return !b.trusts(&c) })
	if len(intact) == 0 {
		return nan // what there is may be good, and nothing else is there
	}
	again := b.count < r.MaxRewinds
	to := intact[len(intact)-1]
	if again {
		to = b.choose(intact, r.attempt.given)
	}
	r.rewindLatest(to)
	for _, c := range slices.Clone(r.store.Known()) {
		if c.Is(&to) || !c.IsNewer(&to) {
			continue
		}
		if err := r.moveAside(c); err != nil {
			r.log.Error("cannot rewind to an earlier checkpoint", "checkpoint", to.Path, "err", err)
			return nan
		}
	}
	if !again {
		return nan // and a later start has no checkpoint from after the fault
	}
	b.count++
	b.further++
	b.failed = nan.Step
	r.log.Warn("loss is NaN; rewinding", "step", nan.Step, "loss", nan.Loss, "to", filepath.Base(to.Path))
	r.counts.update(func(c *counts) { c.stats.Rewinds++ })
	return nil
}

// choose returns the checkpoint to go back to, among those that may be good. If the program was
// given one and has reported no finite loss since, that may have been saved after the fault, by a
// run that was killed before it could move it aside.
func (b *rewinds) choose(intact []Checkpoint, given *Checkpoint) Checkpoint {
	at := max(len(intact)-1-b.further, 0)
	if at > 0 && !b.proven && given != nil && given.Is(&intact[at]) {
		at--
	}
	return intact[at]
}

// moveAside moves an intact checkpoint to where the damaged ones go.
func (r *run) moveAside(c Checkpoint) error {
	m, err := r.store.Quarantine(r.ectx, c, time.Now())
	if err != nil {
		return err
	}
	r.store.Drop(c)
	r.log.Info("moved a checkpoint that was saved after the fault aside", "checkpoint", c.Path, "to", m.Dir)
	return m.Misnamed
}
