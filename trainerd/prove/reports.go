package prove

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// A program that reports every tenth step says less about a restart than one that
// reports them all: which step came first is not known, a mean since the last report
// begins again with the program, and so may the count of steps between two reports.

// steps returns the steps that the training has reported, in order: those of an
// evaluation only where there are no others.
func (o *outcome) steps() (all []int64) {
	var others []int64
	for tag, points := range o.curves {
		for step := range points {
			if evaluates().MatchString(tag) {
				others = append(others, step)
			} else {
				all = append(all, step)
			}
		}
	}
	if len(all) == 0 {
		all = others
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// spacing returns how many steps are between two reports, usually.
func (o *outcome) spacing() int64 { return spacing(o.steps()) }

func spacing(steps []int64) int64 {
	if len(steps) < 2 {
		return 0
	}
	gaps := make([]int64, 0, len(steps)-1)
	for i, step := range steps[1:] {
		gaps = append(gaps, step-steps[i])
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// reportFrom returns the first report at a step or after it.
func (o *outcome) reportFrom(step int64) (first int64, ok bool) {
	steps := o.steps()
	i, _ := slices.BinarySearch(steps, step)
	if i == len(steps) {
		return 0, false
	}
	return steps[i], true
}

// countsFromStart reports whether a curve that is reported every so many steps has
// points at other steps after a restart, as many: the program counts from its start.
func (e *evidence) countsFromStart(c Curve) bool {
	return countsFromStart(c, e.reference.curves[c.Tag])
}

func countsFromStart(c Curve, points map[int64]float64) bool {
	return len(c.Missing) > 0 && len(c.Extra) > 0 && spacing(sortedSteps(points)) > 1
}

// beginsLate reports whether a curve lacks no more than what it lacks after each start: a
// program that trains on what it has collected before has no loss in its first report.
func (e *evidence) beginsLate(c Curve) bool {
	steps := sortedSteps(e.reference.curves[c.Tag])
	if e.begin < 0 || len(steps) == 0 {
		return false
	}
	return c.Missing[len(c.Missing)-1] < e.begin+steps[0]-e.reference.first
}

// isLate reports whether a curve has the values that it should have, but for those that it lacks
// after each start.
func (e *evidence) isLate(c Curve) bool {
	return c.First < 0 && len(c.Missing) > 0 && len(c.Extra) == 0 && e.beginsLate(c)
}

// isMoved reports whether a curve has no step with another value, but its points at other
// steps.
func (e *evidence) isMoved(c Curve) bool { return c.Differ == 0 && e.countsFromStart(c) }

// moved explains reports that all come at other steps after a restart: between two of them
// the program does something as a whole, as a rollout, and was in the middle of it when it
// saved.
func (e *evidence) moved() []Cause {
	if e.begin < 0 || len(e.training) == 0 || len(e.Difference.Tensors) > 0 || slices.ContainsFunc(e.training, func(c Curve) bool { return !e.isMoved(c) }) {
		return nil
	}
	return []Cause{{partData.name, fmt.Sprintf("after the restart it reports other steps, first %d, where undisturbed it reports %d: "+
		"the checkpoint was written in the middle of what it does from one report to the next, as a rollout or a pass over the data, and that begins again", e.begin, e.training[0].from())}}
}

// reportsAlone explains curves that differ though the checkpoints are the same to the
// bit.
func (e *evidence) reportsAlone() []Cause {
	if len(e.Difference.Tensors) > 0 || !e.compared || len(e.training) == 0 {
		return nil
	}
	c := e.training[0]
	return []Cause{{"a curve that is not resumed", fmt.Sprintf("the checkpoints after the restart are the same to the bit, and the curve %s differs, from step %d: "+
		"what it is computed from, as a mean or a best, is not restored", c.Tag, c.from())}}
}

// rareReports explains a difference in the first report after the restart, which has
// several steps in it.
func (e *evidence) rareReports() (found []Cause) {
	every := e.reference.spacing()
	if every < 2 || len(e.training) == 0 || e.begin < 0 || e.training[0].from() > e.begin {
		return nil
	}
	why := fmt.Sprintf("it reports every %d steps, and the first report after the restart differs already; report each step to know more", every)
	if e.exact > 0 {
		return e.placeInData(why)
	}
	if e.mentions(partOptimizer) && !e.restoredCounter() || e.mentions(partSchedule) && !e.reportsSchedule() {
		found = e.updates(why)
	}
	found = append(found, e.inScript(append(e.drawn(), partEMA), why)...)
	if e.restoredCounter() {
		return found // as many updates as steps
	}
	return append(found, Cause{partStep.name, why})
}

// forgiveReports takes out what only shows how a program reports: where its checkpoints
// are the same to the bit, the first point after a restart may be a mean that has begun
// again, and so may the only one, at the end; and the points may be at other steps, or
// lost with a start that has written them into a folder of its own. It returns the curves
// concerned.
func (r *Result) forgiveReports(reference curves) (tags []string) {
	if len(r.Difference.Tensors) > 0 || !r.compared || len(r.restarts) < 2 {
		return nil
	}
	begin := r.restarts[len(r.restarts)-1].first
	r.Difference.Curves = slices.DeleteFunc(r.Difference.Curves, func(c Curve) bool {
		moved := c.Differ == 0 && countsFromStart(c, reference[c.Tag])
		if partOf(path.Base(c.Tag)) != partWeights && !moved {
			return false
		}
		first := c.First == begin && c.Differ == 1 && len(c.Missing) == 0 && len(c.Extra) == 0 && spacing(sortedSteps(reference[c.Tag])) > 1
		unwritten := strings.Contains(c.Tag, "*/") && c.Differ == 0 && len(c.Extra) == 0 // of a start's own folder, which the start had not written yet
		if moved || first || unwritten || isClosingMean(c, reference[c.Tag]) {
			tags = append(tags, c.Tag)
			return true
		}
		return false
	})
	return tags
}

// closingMeans are the tags of losses over a whole training, as transformers' Trainer
// reports one when it ends.
var closingMeans = lazyregexp.New(`(?i)(?:^|[/_. -])(?:train|training|mean|avg|average)[/_. -]?loss$`)

// isClosingMean reports whether a curve is a single mean over the steps since the
// program has started.
func isClosingMean(c Curve, points map[int64]float64) bool {
	return len(points) == 1 && c.Differ == 1 && len(c.Extra) == 0 && closingMeans().MatchString(c.Tag) && !evaluates().MatchString(c.Tag)
}
