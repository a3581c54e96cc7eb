package child

import (
	"math"
	"path"
	"slices"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
)

// A program may restart its training within a start: torchrun restarts failed workers, a shell loop
// its command. Its reports then go back to its checkpoint, as after another start, and must be
// handled in the same way: without a START the curves would step back, and everything that counts
// from the highest step would wait until that is reached again.

// reportedCurve is what a start has reported about a curve.
type reportedCurve struct {
	step   int64 // the highest
	bits   uint64
	steps  int // how many there were
	double int // how often one came that was not further, but for the same value once more
}

// isShared reports whether several processes report the curve, as the ranks of a launcher may: then
// steps alternate although no process goes back.
func (t *reportedCurve) isShared() bool { return 2*t.double >= t.steps }

// recordReported records which steps of its curves a report has.
func (a *attempt) recordReported(report *Report) {
	if a.reported == nil {
		a.reported, a.firstReported = map[string]*reportedCurve{}, report.Step
	}
	for _, v := range report.Values {
		t, bits := a.reported[v.Tag], math.Float64bits(v.Value)
		switch {
		case t == nil:
			a.reported[v.Tag] = &reportedCurve{step: report.Step, bits: bits, steps: 1}
		case report.Step > t.step:
			t.step, t.bits, t.steps = report.Step, bits, t.steps+1
		case report.Step < t.step, bits != t.bits:
			t.double++
		}
	}
}

// highestReported returns the highest step of a curve since the program has begun, or begun again.
func (a *attempt) highestReported() (step int64) {
	for _, t := range a.reported {
		step = max(step, t.step)
	}
	return step
}

// mostHeld bounds the reports of one step that wait for the next.
const mostHeld = 64

// onReport handles a report that arrived at a time. A report that goes back waits for the next one:
// if that is also of a step made before, the program has begun again. Otherwise the first one was
// late, or came from another process that evaluates an earlier checkpoint.
func (r *run) onReport(report *Report, at time.Time) {
	said := queued{report, at}
	if held := r.attempt.held; len(held) > 0 {
		back := held[0].report.Step
		if report.Step == back && len(held) < mostHeld {
			r.attempt.held = append(held, said)
			return
		}
		if back < report.Step && report.Step <= r.attempt.step && r.attempt.ending == nil {
			r.beginAgain(held[0])
		}
		r.release()
	}
	if r.goesBack(report) {
		r.attempt.held = []queued{said}
		return
	}
	r.takeReport(report, at)
}

// release handles the reports that have waited.
func (r *run) release() {
	held := r.attempt.held
	r.attempt.held = nil
	for _, said := range held {
		r.takeReport(said.report, said.at)
	}
}

// few is how many steps of a curve show whether several processes report it.
const few = 3

// goesBack reports whether a report may be the first since the program has begun again: its curve
// had a higher step before, and its step may follow the checkpoint.
func (r *run) goesBack(report *Report) bool {
	if report.Step >= r.attempt.step || r.attempt.ending != nil {
		return false
	}
	least := int64(0) // of the highest step of such a curve
	c, ok := r.usable()
	switch {
	case ok && c.At() != found.NoStep:
		if report.Step < c.At() {
			return false // a validation may count from the beginning
		}
	case !ok && report.Step > r.attempt.firstReported:
		return false
	default:
		least = r.attempt.highestReported()
	}
	for _, v := range report.Values {
		t := r.attempt.reported[v.Tag]
		if t != nil && t.step > report.Step && t.step >= least && t.steps >= few && !t.isShared() {
			return true
		}
	}
	return false
}

// beginAgain handles a program that has begun again within its start; first is its first report.
func (r *run) beginAgain(first queued) {
	step := first.report.Step
	r.log.Warn("the program has begun again without having ended; its curves continue from there", "step", r.attempt.step, "first", step)
	since := r.attempt.grewAt
	r.attempt.step, r.attempt.furthest, r.attempt.lastProgress = max(step-1, 0), r.maxStep, first.at
	r.attempt.meter = rateMeter{}
	for _, t := range r.attempt.reported {
		t.step = -1
	}
	r.prompter.begin()
	r.continueFromNewest(since)
	r.askAgain(step)
	r.attempt.eventFiles = r.eventFilesBefore(since)
	r.purgeFrom(step, r.loadedBefore(step))
	r.beginCurves(step)
	r.observer.Started(r.attempts, r.attempt.given)
}

// continueFromNewest assumes that the program has loaded the newest checkpoint from before a time,
// when it last got further, as a start would have. A loss that was finite once does not vouch for
// what was saved since.
func (r *run) continueFromNewest(since time.Time) {
	r.attempt.given = newestUpTo(since, r.store.Known())
	r.rewinds.begin(r.attempt.given)
}

// newestUpTo returns the newest of some checkpoints that was saved up to a time; the newest of all if none was,
// and nil if there are none.
func newestUpTo(at time.Time, known []Checkpoint) *Checkpoint {
	for _, c := range slices.Backward(known) {
		if !c.Saved.After(at) {
			return &c
		}
	}
	if len(known) == 0 {
		return nil
	}
	newest := known[len(known)-1]
	return &newest
}

// askAgain repeats a request to save that somebody waits for: the program got it before it began
// again with a step.
func (r *run) askAgain(step int64) {
	for i := range r.savers {
		r.savers[i].step = min(r.savers[i].step, step)
	}
	if len(r.savers) > 0 {
		r.checkSaveSignal(r.askToSave())
	}
}

// loadedBefore returns the checkpoint that a program which has begun again with a step has loaded,
// or nil if that is not known.
func (r *run) loadedBefore(step int64) *Checkpoint {
	if c := r.attempt.given; c != nil && c.At() == step-1 {
		return c
	}
	return nil
}

// eventFilesBefore returns the program's newest events files that were begun up to a time. Later
// ones belong to the program after it has begun again.
func (r *run) eventFilesBefore(at time.Time) *eventFiles {
	files := r.findEvents()
	for dir := range files.newest {
		delete(files.newest, dir)
		for _, name := range r.eventFilesIn(dir, isForeignEvents) {
			if base := path.Base(name); secondOf(base) <= at.Unix() {
				files.newest[dir] = base
				break
			}
		}
	}
	return files
}
