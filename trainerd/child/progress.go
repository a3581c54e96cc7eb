package child

import (
	"time"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// takeReport handles a report of the step that the program has reached, or of an earlier one.
func (r *run) takeReport(report *Report, at time.Time) {
	if r.attempt.step < 0 {
		r.makeWay()
		r.continued = r.attempt.begun
		r.store.RecordContinued(r.attempt.given, report.Step-1)
		r.checkResumed(report.Step)
		r.beginPoints(r.firstPoint(report))
	} else if len(report.Values) > 0 && r.attempt.reported == nil && report.Step < r.attempt.curvesFrom {
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
	r.markTried(report.Step)
	r.events.report(r.ectx, report, at)
	if len(report.Values) > 0 {
		r.attempt.recordReported(report)
	}
	r.measure(report)
	r.watchLoss(report, at)
	r.attempt.meter.record(r.attempt.step, at)
	r.observer.Reported(report)
}

// beginCurves makes TensorBoard drop what an earlier start has written from a step on, because
// these steps are made again.
func (r *run) beginCurves(from int64) {
	r.attempt.curvesFrom = from
	r.events.session(r.ectx, tfpb.SessionLog_START, "", from)
	r.beginHParams(from)
	r.measured.forget(from)
	r.events.Supersede(from)
}

// firstPoint returns the step from which a start makes points, according to its first report. A
// first report without numbers, of a step no later than the checkpoint's, names the step that was
// loaded, whose points stay.
func (r *run) firstPoint(report *Report) int64 {
	c := r.attempt.given
	if len(report.Values) > 0 || c != nil && c.At() != found.NoStep && report.Step > c.At() {
		return report.Step
	}
	return report.Step + 1
}

// beginPoints makes TensorBoard drop the points of an earlier start from a step on: trainerd's, and
// the program's own.
func (r *run) beginPoints(from int64) {
	r.purgeAt(from)
	r.beginCurves(from)
}

// checkResumed logs that a program that was given a checkpoint has started from scratch. first is
// the step of its first report.
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

// writeRate writes a point of global_step/sec.
func (r *run) writeRate() {
	if rate, ok := r.attempt.meter.rate(); ok {
		r.events.scalar(r.ectx, "global_step/sec", rate, r.attempt.step)
	}
}
