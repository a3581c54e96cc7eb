package child

import (
	"cmp"
	"math"
	"os"
	"slices"

	"github.com/trainerd/trainerd/tfevents"
)

// Events that count epochs, samples or tokens, and not the steps of the reports, have no step that
// a checkpoint names. When they were written says which of them it has.

// A written step is one that events have, and when the first of them was written, in seconds.
type written struct {
	step int64
	at   float64
}

// repeatedIn returns from which step on this start repeats the points in a folder of events that
// count something else than the reports. It is false where there are none, or where a START would
// drop others, too: then the log says so.
func (r *run) repeatedIn(dir string) (from int64, some bool) {
	c := r.attempt.given
	if c == nil {
		r.sayCounting(dir)
		return 0, false
	}
	steps, ok := r.stepsIn(dir)
	from, some, alone := repeatedSince(steps, tfevents.WallTime(c.Written()))
	if !ok || !alone {
		r.sayCounting(dir)
		return 0, false
	}
	return from, some
}

// stepsIn returns the steps of the points in a folder, unless there are too many bytes to read.
func (r *run) stepsIn(dir string) (steps []written, ok bool) {
	left, first := int64(mostOwnEventBytes), map[int64]float64{}
	for _, name := range r.eventFilesIn(dir, isForeignEvents) {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		if left -= info.Size(); left < 0 {
			return nil, false
		}
		noteSteps(name, first)
	}
	for step, at := range first {
		steps = append(steps, written{step, at})
	}
	return steps, true
}

// noteSteps notes when the first point of each step in a file was written.
func noteSteps(name string, first map[int64]float64) {
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	for e, err := range tfevents.NewReader(f).Events() {
		if err != nil {
			return // what follows is shown by nobody
		}
		at, seen := first[e.GetStep()]
		if len(e.GetSummary().GetValue()) > 0 && (!seen || e.GetWallTime() < at) {
			first[e.GetStep()] = e.GetWallTime()
		}
	}
}

// repeatedSince returns the first of the steps that were made after a time, if there are some,
// and whether a START at that one drops no others. The point of a step may come just after the
// checkpoint that has it, as some save before they log: it is none of them then.
func repeatedSince(steps []written, saved float64) (from int64, some, alone bool) {
	const soon = 4 // parts of the time that a step takes
	slices.SortFunc(steps, func(a, b written) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	n := slices.IndexFunc(steps, func(w written) bool { return w.at > saved })
	if n < 0 {
		n = len(steps)
	}
	if n > 0 && n < len(steps) && (steps[n].at-saved)*soon < steps[n].at-steps[n-1].at {
		n++
	}
	if n == len(steps) {
		return 0, false, true
	}
	from = math.MaxInt64
	for _, w := range steps[n:] {
		from = min(from, w.step)
	}
	highest := int64(math.MinInt64)
	for _, w := range steps[:n] {
		highest = max(highest, w.step)
	}
	return from, true, highest < from
}
