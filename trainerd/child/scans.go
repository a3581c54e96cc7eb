package child

import (
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// refresh looks for new checkpoints, deletes those that no policy keeps, and waits for both.
func (r *run) refresh(settled bool) {
	r.endRefresh()
	r.onCheckpoints(r.store.Refresh(settled))
}

// scanSpacing is how many times the duration of a scan passes before the next scan, unless somebody
// waits for a checkpoint. A folder of tens of thousands of files on a slow disk takes seconds,
// during which neither reports nor signals are handled.
const scanSpacing = 10

// beginRefresh begins a scan whose verdicts are sent to loop: reading a large checkpoint must delay
// neither reports nor signals.
func (r *run) beginRefresh() {
	isAwaited := r.attempt.ending != nil || len(r.savers) > 0 || len(r.intact) > 0
	if r.verdicts != nil || !isAwaited && time.Now().Before(r.nextScan) {
		return // the one before has not ended, or has taken long
	}
	began := time.Now()
	all := r.store.Unverified(r.intact)
	if r.intact = nil; len(all) == 0 {
		all = r.store.Candidates(false)
	}
	r.nextScan = began.Add(scanSpacing * time.Since(began))
	if len(all) == 0 {
		return
	}
	verdicts, s := make(chan []found.Verdict, 1), r.store
	r.verdicts = verdicts
	go func() { // ends with the scan: see endRefresh
		defer logging.Waiting(r.log.Info, "checkpoint "+all[len(all)-1].Path+" to be verified")()
		verdicts <- s.Verify(r.ectx, all)
	}()
}

// endRefresh waits for a scan that was begun.
func (r *run) endRefresh() {
	if r.verdicts != nil {
		r.onVerdicts(<-r.verdicts)
	}
}

// onVerdicts handles the verdicts of a scan.
func (r *run) onVerdicts(verdicts []found.Verdict) {
	r.verdicts = nil
	r.onCheckpoints(r.store.Accept(verdicts))
}

// onCheckpoints handles the result of a scan.
func (r *run) onCheckpoints(added []Checkpoint, bad []found.Rejected) {
	r.skip(bad)
	r.noteReused()
	for _, err := range r.store.Unrecorded() {
		r.log.Warn("checkpoint has no manifest, or no copy", "err", err) // it counts all the same
	}
	r.counts.update(func(c *counts) {
		c.saves += len(added)
		c.stats.EventsDropped = r.events.Dropped()
	})
	for _, c := range added {
		r.reach(c)
		r.events.session(r.ectx, tfpb.SessionLog_CHECKPOINT, c.Path, max(c.Step, 0))
		r.events.flush(r.ectx) // the points of the steps that it has
		r.syncForwarded()
		r.log.Info("saved", c.Attrs()...)
		r.noteSave(c)
		r.warnRisk()
		r.savedAtTheEnd(c)
		r.observer.Saved(c)
		r.answerSavers(c)
	}
	if len(added) > 0 && r.attempt.nan == nil && !r.hasUntakenReports() { // the loss may be why the new ones must go, or others stay
		r.rotate()
	}
}

// isOwn reports whether the newest start has saved a checkpoint, and not an earlier one.
func (r *run) isOwn(c Checkpoint) bool { return c.FirstFound().Attempt == r.attempts }

// reach records how far the program has come, according to what it has saved.
func (r *run) reach(c Checkpoint) {
	r.attempt.saves = r.attempt.saves || r.isOwn(c)
	if r.ceiling != nil && !c.Precedes(r.ceiling) {
		r.ceiling = nil
	}
	isFurthest := r.isOwn(c) || !r.counts.hasReports() // else that start has reported how far it came
	if r.attempt.step < 0 && isFurthest && c.Step > r.maxStep {
		r.maxStep, r.attempt.progressed = c.Step, true
	}
}

func (r *run) rotate() { r.noteDeleted(r.store.Rotate()) }

// noteDeleted logs what a rotation has deleted, and what it could not delete.
func (r *run) noteDeleted(deleted []found.Checkpoint, err error) {
	for _, c := range deleted {
		r.log.Debug("deleted checkpoint", "step", c.Step, "path", c.Path)
	}
	if err != nil {
		r.log.Warn("cannot delete checkpoint", "err", err)
	}
}

// hintCheckpoints logs once how to have checkpoints managed. A program that loads its newest
// checkpoint may need that, because it fails with one that a kill has cut short.
func (r *run) hintCheckpoints() {
	if r.Checkpoints == "" && r.attempts == 1 {
		r.log.Info("checkpoints are not looked after: child.checkpoints says what they are called, and `trainerd init -- PROGRAM` finds that out")
	}
}

// skip logs and counts checkpoints that do not count.
func (r *run) skip(bad []found.Rejected) {
	for _, b := range bad {
		r.log.Warn("skipping checkpoint", "err", b)
		r.counts.refused(b)
	}
}
