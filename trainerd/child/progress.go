package child

import (
	"math"
	"time"

	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// takeReport takes a report of the step that the program has come to, or of an earlier one.
func (r *run) takeReport(report *Report, at time.Time) {
	if r.attempt.step < 0 {
		r.makeWay()
		r.continued, r.continuedIn = r.attempt.begun, r.attempts
		r.store.NoteContinued(r.attempt.given, report.Step-1)
		r.checkResumed(report.Step)
		r.beginPoints(r.firstPoint(report))
	} else if len(report.Values) > 0 && r.attempt.told == nil && report.Step < r.attempt.curvesFrom {
		r.beginPoints(report.Step)
	}
	if report.Step > r.attempt.step {
		r.attempt.beforeLast, r.attempt.lastProgress, r.attempt.grewAt = r.attempt.lastProgress, at, report.saidAt(at)
		r.counts.trained(r.attempt.step, report.Step, r.attempt.furthest, r.attempt.given)
	}
	r.attempt.step = max(r.attempt.step, report.Step)
	if r.attempt.step > r.maxStep {
		r.maxStep, r.attempt.progressed = r.attempt.step, true
	}
	r.prompter.trained(r.attempt.step, at)
	r.trust(report.Step)
	r.events.report(r.ectx, report, at)
	if len(report.Values) > 0 {
		r.attempt.noteTold(report)
	}
	r.measure(report)
	r.watchLoss(report, at)
	r.attempt.meter.record(r.attempt.step, at)
	r.observer.Reported(report)
}

// beginCurves has TensorBoard drop what an earlier start has written from a step on, which is
// done once more.
func (r *run) beginCurves(from int64) {
	r.attempt.curvesFrom = from
	r.events.session(r.ectx, tfpb.SessionLog_START, "", from)
	r.beginHParams(from)
	r.measured.forget(from)
	r.events.Overtake(from)
}

// firstPoint returns from which step on a start makes points, by its first report. One without
// numbers says which step was loaded, if it is not of a later one than its checkpoint: the points
// of that step stay.
func (r *run) firstPoint(report *Report) int64 {
	c := r.attempt.given
	if len(report.Values) > 0 || c != nil && c.At() != found.NoStep && report.Step > c.At() {
		return report.Step
	}
	return report.Step + 1
}

// beginPoints has points from a step on that an earlier start has made be dropped: trainerd's, and
// the program's own.
func (r *run) beginPoints(from int64) {
	r.purgeAt(from)
	r.beginCurves(from)
}

// checkResumed logs that a program that was given a checkpoint has begun from the
// beginning. first is the step of its first report.
func (r *run) checkResumed(first int64) {
	c := r.attempt.given
	if r.attempts == 1 && c == nil {
		r.firstStep = first
	}
	if c == nil || c.At() == found.NoStep || first > max(r.firstStep, 1) || first >= c.At() {
		return
	}
	r.log.Warn("the program was given a checkpoint and has begun from the beginning; child.resume_args, or TRAINERD_CHECKPOINT in its environment, say what to load",
		"checkpoint", c.Path, "step", c.At(), "first", first)
}

// skip logs and counts checkpoints that do not count.
func (r *run) skip(bad []found.Rejected) {
	for _, b := range bad {
		r.log.Warn("skipping checkpoint", "err", b)
		r.counts.refused(b)
	}
}

// writeRate writes a point of global_step/sec.
func (r *run) writeRate() {
	if rate, ok := r.attempt.meter.rate(); ok {
		r.events.scalar(r.ectx, "global_step/sec", rate, r.attempt.step)
	}
}

// refresh finds new checkpoints and lets go of old ones, and waits for that.
func (r *run) refresh(settled bool) {
	r.endRefresh()
	r.onCheckpoints(r.store.Refresh(settled))
}

// lookSpacing is how many times as long as a look has taken passes before the next, unless somebody
// waits for a checkpoint: a folder of tens of thousands of files on a slow disk takes seconds, in
// which neither reports nor signals are heard.
const lookSpacing = 10

// beginRefresh begins a look whose verdicts come to loop: reading a large checkpoint
// must hold up neither reports nor signals.
func (r *run) beginRefresh() {
	isAwaited := r.attempt.ending != nil || len(r.savers) > 0 || len(r.intact) > 0
	if r.verdicts != nil || !isAwaited && time.Now().Before(r.nextLook) {
		return // the one before has not ended, or has taken long
	}
	began := time.Now()
	all := r.store.Unverified(r.intact)
	if r.intact = nil; len(all) == 0 {
		all = r.store.Candidates(false)
	}
	r.nextLook = began.Add(lookSpacing * time.Since(began))
	if len(all) == 0 {
		return
	}
	verdicts, s := make(chan []found.Verdict, 1), r.store
	r.verdicts = verdicts
	go func() { // ends with the look: see endRefresh
		defer logging.Waiting(r.log.Info, "checkpoint "+all[len(all)-1].Path+" to be verified")()
		verdicts <- s.Verify(r.ectx, all)
	}()
}

// endRefresh waits for a look that was begun.
func (r *run) endRefresh() {
	if r.verdicts != nil {
		r.onVerdicts(<-r.verdicts)
	}
}

// onVerdicts takes the verdicts of a refresh.
func (r *run) onVerdicts(verdicts []found.Verdict) {
	r.verdicts = nil
	r.onCheckpoints(r.store.Accept(verdicts))
}

// onCheckpoints takes over what a look has found.
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
		own := c.FirstFound().Attempt == r.attempts
		r.attempt.saves = r.attempt.saves || own
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
	if n := len(added); n > 0 && added[n-1].FirstFound().Attempt < r.continuedIn {
		r.store.Trust(math.MaxInt64, r.attempts) // the program has continued from there, though it was not verified then
	}
	if len(added) > 0 && r.attempt.nan == nil && !r.hasUntakenReports() { // the loss may be why the new ones must go, or others stay
		r.rotate()
	}
}

// reach notes how far the program has come by what it has saved.
func (r *run) reach(c Checkpoint) {
	if r.ceiling != nil && !c.Precedes(r.ceiling) {
		r.ceiling = nil
	}
	if r.attempt.step < 0 && c.Step > r.maxStep { // without reports, this alone says how far it came
		r.maxStep, r.attempt.progressed = c.Step, true
	}
}

func (r *run) rotate() {
	deleted, err := r.store.Rotate()
	for _, c := range deleted {
		r.log.Debug("deleted checkpoint", "step", c.Step, "path", c.Path)
	}
	if err != nil {
		r.log.Warn("cannot delete checkpoint", "err", err)
	}
}

// hintCheckpoints says once how to have checkpoints looked after. A program that
// finds its own may need that: one that a kill has cut short is in its way.
func (r *run) hintCheckpoints() {
	if r.Checkpoints == "" && r.attempts == 1 {
		r.log.Info("checkpoints are not looked after: child.checkpoints says what they are called, and `trainerd init -- PROGRAM` finds that out")
	}
}
