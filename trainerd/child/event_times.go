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

// Which points of the program's events a checkpoint has is not always said by their steps: these
// may count epochs, samples or tokens, or from zero. It is said by when they were written.

// A written step is one that events have, and when the first of them was written, in seconds.
type written struct {
	step int64
	at   float64
}

// markedFrom returns from which step on the points of a folder of events are dropped that are made
// again, from a step of the reports on. It is false where no mark is of use, or it would hide others.
// left is how many bytes of events may be read yet.
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

// continuesAfter reports whether a program whose next step is known continues from a checkpoint, and
// has not begun from the beginning.
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

// noteSteps notes when the first point of each step in a file was written. It reports whether the
// times are those of a clock: they do not go back, nor lie ahead.
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

// repeatedFrom returns from which step on the points are repeated that were written after a
// checkpoint, and whether there are any. next is the step after the checkpoint, as the reports
// count. It is not ok where points that were written before have such steps, too, in other units:
// a START would drop them.
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
	// While a checkpoint is written, a program may train on; and another process may look at one from
	// before for long, and write what nobody repeats.
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

// countBefore sorts steps by time, and returns how many of them a checkpoint has that was written
// at a time. The points of its own step may come just after it, as some programs save before they log.
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
