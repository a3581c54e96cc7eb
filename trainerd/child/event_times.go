package child

import (
	"cmp"
	"math"
	"os"
	"slices"
	"time"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// The steps of the program's events do not always show which points a checkpoint covers: they may
// count epochs, samples or tokens, or from zero. The times at which the points were written do.

// A written is a step that events have, and when the first event with it was written, in seconds.
type written struct {
	step int64
	at   float64
}

// markedFrom returns the step from which the points in a folder must be dropped because the program
// repeats them, given the step of its reports from which it repeats. It returns false if a mark
// would be of no use, or would hide other points. left is how many more bytes of events may be
// read.
func (r *run) markedFrom(dir string, step int64, after *Checkpoint, left *int64) (from int64, marked bool) {
	if after != nil && r.continuesAfter(after, step) {
		steps, ok := r.stepsIn(dir, left)
		if ok && len(steps) > 0 {
			if from, marked, ok = repeatedFrom(steps, tfevents.WallTime(after.Written()), step); ok {
				return from, marked
			}
		}
	}
	return step, !r.countsOther(dir, max(step-1, r.maxStep))
}

// continuesAfter reports whether a program whose next step is known continues from a checkpoint,
// and has not started from scratch.
func (r *run) continuesAfter(c *Checkpoint, next int64) bool {
	return c.At() == next-1 || c.At() == found.NoStep && next > max(r.firstStep, 1)
}

// stepsIn returns the steps of the points in a folder, unless there are too many bytes to read, or
// their times are not from a clock.
func (r *run) stepsIn(dir string, left *int64) (steps []written, ok bool) {
	first := map[int64]float64{}
	for _, name := range r.eventFilesIn(dir, isForeignEvents) {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		if info.Size() > *left {
			return nil, false
		}
		*left -= info.Size()
		if !noteSteps(name, first) {
			return nil, false
		}
	}
	for step, at := range first {
		steps = append(steps, written{step, at})
	}
	return steps, true
}

// noteSteps records when the first point of each step in a file was written. It reports whether the
// times come from a clock: they neither go back nor lie in the future.
func noteSteps(name string, first map[int64]float64) bool {
	f, err := os.Open(name)
	if err != nil {
		return true
	}
	defer f.Close()
	last, limit := math.Inf(-1), tfevents.WallTime(time.Now().Add(maxSkew))
	for e, err := range tfevents.NewReader(f).Events() {
		if err != nil {
			break // what follows is shown by nobody
		}
		if len(e.GetSummary().GetValue()) == 0 {
			continue
		}
		at := e.GetWallTime()
		if !(at >= last-maxSkew.Seconds() && at < limit) {
			return false
		}
		last = at
		if before, seen := first[e.GetStep()]; seen {
			at = min(at, before)
		}
		first[e.GetStep()] = at
	}
	return true
}

// repeatedFrom returns the step from which points that were written after a checkpoint are
// repeated, and whether there are any. next is the step after the checkpoint in the reports' count.
// It is not ok if earlier points also have such steps, in other units, because a START would drop
// them.
func repeatedFrom(steps []written, saved float64, next int64) (from int64, some, ok bool) {
	n := countBefore(steps, saved)
	kept, lost := int64(math.MinInt64), int64(math.MaxInt64)
	for i, w := range steps {
		if i < n {
			kept = max(kept, w.step)
		} else {
			lost = min(lost, w.step)
		}
	}
	// A program may continue to train while a checkpoint is written; and another process may take
	// long to evaluate an earlier checkpoint, and write points that nobody repeats.
	isOfReports := kept < next+next/otherSteps && lost > next/otherSteps
	switch {
	case isOfReports && lost == next-1: // it counts from zero
		return lost, true, true
	case isOfReports:
		return next, true, true
	case n == len(steps):
		return 0, false, true
	}
	return lost, true, kept < lost
}

// countBefore sorts steps by time, and returns how many of them a checkpoint that was written at a
// time covers. The points of its own step may come just after it, because some programs save before
// they log.
func countBefore(steps []written, saved float64) int {
	const (
		soon    = 4 // parts of the time that a step takes
		several = 4 // steps; one may have taken longer for a save, or a restart
	)
	slices.SortFunc(steps, func(a, b written) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	n := slices.IndexFunc(steps, func(w written) bool { return w.at > saved })
	if n < 0 {
		return len(steps)
	}
	took := math.MaxFloat64
	for i := n - 1; i > 0 && i >= n-several; i-- {
		took = min(took, steps[i].at-steps[i-1].at)
	}
	if n > 1 && (steps[n].at-saved)*soon < took {
		n++
	}
	return n
}
