package prove

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Cause is the most likely reason why a training does not resume exactly.
type Cause struct {
	Name string `json:"name"`
	Why  string `json:"why"` // the evidence for it
}

// evidence is what one disturbed run shows.
type evidence struct {
	*Result
	reference *outcome
	saved     []int64 // steps of the reference's checkpoints
	saveFirst bool    // a checkpoint has the steps before its number, without that
	source    string
	pattern   string // of the checkpoints
	exact     int    // other runs that resumed from a checkpoint and are the same

	seen  map[*part]string // parts that differ, and what shows it
	begin int64            // first step of the program after the disturbance, -1 if not known
	// Curves that differ, the first one first: of the training, of an evaluation.
	training, evaluated []Curve
}

// causes returns the likely causes of a difference, the likeliest first.
func (e *evidence) causes() []Cause {
	e.collect()
	for _, find := range []func() []Cause{
		e.alone, e.fromScratch, e.older, e.partOfEpoch, e.offByOne, e.byCounters, e.independent, e.scale, e.unused, e.reportsAlone, e.moved, e.accumulation, e.optimizer, e.rareReports, e.inputs,
	} {
		if found := find(); len(found) > 0 {
			return found
		}
	}
	return []Cause{{"state that is not saved", "the runs differ after the restart, and neither names nor curves say where it begins"}}
}

// collect sorts what differs by the parts of the state.
func (e *evidence) collect() {
	e.seen, e.begin = map[*part]string{}, -1
	if n := len(e.restarts); n > 1 {
		e.begin = e.restarts[n-1].first
	}
	for _, t := range e.Difference.Tensors {
		if t.Name == "" && !holdsState().MatchString(t.File) && t.File == "" {
			continue // the last checkpoint is of another step
		}
		if p := t.part(); e.seen[p] == "" {
			e.seen[p] = fmt.Sprintf("%s of %s: %s", t.Name, t.File, t.Reason)
		}
	}
	e.training, e.evaluated = e.split()
	for _, c := range append(slices.Clone(e.training), e.evaluated...) {
		p := partOf(path.Base(c.Tag))
		if e.isEvaluation(c) && p.depends || e.isMoved(c) || e.isLate(c) {
			continue // it follows what differs, or shows how the program reports
		}
		if p != partStep && e.seen[p] == "" {
			e.seen[p] = fmt.Sprintf("the curve %s, from step %d", c.Tag, c.from())
		}
	}
}

// split sorts the curves that differ into the training's and an evaluation's. If there is no other
// curve, the evaluation's count as the training's.
func (e *evidence) split() (training, evaluated []Curve) {
	for _, c := range e.Difference.Curves {
		if evaluates().MatchString(c.Tag) {
			evaluated = append(evaluated, c)
		} else {
			training = append(training, c)
		}
	}
	for tag := range e.reference.curves {
		if !evaluates().MatchString(tag) && partOf(path.Base(tag)) == partWeights {
			return training, evaluated
		}
	}
	return e.Difference.Curves, nil
}

func (e *evidence) isEvaluation(c Curve) bool {
	return slices.ContainsFunc(e.evaluated, func(x Curve) bool { return x.Tag == c.Tag })
}

// alone finds a part that differs and changes nothing else, except what an evaluation reports.
func (e *evidence) alone() (found []Cause) {
	for _, p := range []*part{partEMA, partNorm, partBest, partScaler} {
		if why := e.seen[p]; why != "" {
			found = append(found, Cause{p.name, "nothing else differs: " + why})
		}
	}
	if len(found) != len(e.seen) {
		return nil
	}
	return found
}

// numbered is a variable of an optimizer of Keras, which has no name in a checkpoint.
var numbered = lazyregexp.New(`^optimizer/\d+$`)

// scale finds a Keras optimizer whose variables differ, while the weights and what the training
// reports do not: among its variables, only the loss scale has that effect.
func (e *evidence) scale() []Cause {
	line, ok := e.lineMatching(partScaler.words())
	if !ok || len(e.training) > 0 || len(e.Difference.Tensors) == 0 {
		return nil
	}
	for _, t := range e.Difference.Tensors {
		if !numbered().MatchString(t.Name) {
			return nil
		}
	}
	t := e.Difference.Tensors[0]
	return []Cause{{partScaler.name, fmt.Sprintf("neither weights nor reports differ, and %s of %s does: %s; the script has: %s", t.Name, t.File, t.Reason, line)}}
}

// unused explains what differs though the curves of the training do not: an evaluation,
// or tensors that it alone uses.
func (e *evidence) unused() (found []Cause) {
	_, reported := e.reference.reportFrom(e.begin + 1)
	var what string
	switch {
	case e.begin < 0 || !reported || len(e.training) > 0:
		return nil
	case len(e.evaluated) > 0:
		c := e.evaluated[0]
		what = fmt.Sprintf("the curve %s does, from step %d", c.Tag, c.from())
	case len(e.Difference.Tensors) > 0:
		t := e.Difference.Tensors[0]
		what = fmt.Sprintf("%s of %s does: %s", t.Name, t.File, t.Reason)
	default:
		return nil
	}
	why := "what the training reports does not differ, and " + what + ": what an evaluation alone uses is not restored"
	if best := e.seen[partBest]; best != "" {
		return []Cause{{partBest.name, "what the training reports does not differ, and what it keeps of its best evaluation does: " + best}}
	}
	for _, p := range []*part{partNorm, partEMA, partDropout, partRandom} {
		if line, ok := e.lineWith(p); ok {
			found = append(found, Cause{p.name, why + "; the script has: " + line})
		}
	}
	if len(found) == 0 {
		found = []Cause{{"state of the evaluation", why}}
	}
	return found
}

// fromScratch finds a program that does not resume at all.
func (e *evidence) fromScratch() []Cause {
	d := e.Disturbance
	if d == nil || e.begin < 0 || d.Resumed <= e.reference.first || e.begin != e.reference.first {
		return nil
	}
	return []Cause{{"no resume", fmt.Sprintf("it began at step %d again, though there was a checkpoint of step %d: it does not load what TRAINERD_CHECKPOINT names", e.begin, d.Resumed)}}
}

// partOfEpoch finds a program that makes more or fewer steps than undisturbed, by more than one:
// from a checkpoint within an epoch it repeats the whole epoch, or skips the wrong part of it.
func (e *evidence) partOfEpoch() []Cause {
	for _, c := range e.training {
		every := max(spacing(sortedSteps(e.reference.curves[c.Tag])), 1)
		at, _ := slices.BinarySearch(c.Extra, e.reference.last+1)
		more, fewer := c.Extra[at:], 0
		for i := len(c.Missing) - 1; i >= 0 && c.Missing[i] == e.reference.last-int64(fewer)*every; i-- {
			fewer++
		}
		switch {
		case every > 1:
		case len(more) > 1:
			return []Cause{{partData.name, fmt.Sprintf("%s continues to step %d or further, want %d: it does steps of an epoch again that it had done before the checkpoint", c.Tag, more[len(more)-1], e.reference.last)}}
		case fewer > 1:
			return []Cause{{partData.name, fmt.Sprintf("%s ends at step %d, want %d: it skips steps of an epoch that it had not done before the checkpoint", c.Tag, e.reference.last-int64(fewer), e.reference.last)}}
		}
	}
	return nil
}

// offByOne finds a step that was done twice, or left out.
func (e *evidence) offByOne() []Cause {
	one := func(format string, args ...any) []Cause {
		return []Cause{{partStep.name, fmt.Sprintf(format, args...)}}
	}
	if why := e.seen[partStep]; why != "" {
		return one("%s", why)
	}
	for _, t := range e.Difference.Tensors {
		if t.File == "" {
			return one("%s", t.Reason)
		}
	}
	for _, c := range e.Difference.Curves {
		switch {
		case len(c.Missing) > 0 && !e.countsFromStart(c) && !e.beginsLate(c):
			return one("%s has no step %d", c.Tag, c.Missing[0])
		case len(c.Extra) > 0 && c.Extra[0] > e.reference.last:
			return one("%s continues to step %d, want %d at most", c.Tag, c.Extra[0], e.reference.last)
		}
	}
	want, known := e.firstAfterResume()
	first, reported := e.reference.reportFrom(want)
	if !known || !reported || e.begin < 0 || e.begin == first {
		return nil
	}
	if e.begin < want && (len(e.training) == 0 || e.training[0].from() > e.begin) {
		return nil // with an update more it would have another loss
	}
	if e.begin < want {
		return one("after the checkpoint of step %d it did step %d, which that has already", e.Disturbance.Resumed, e.begin)
	}
	if e.reference.spacing() > 1 {
		return nil // it may report every so many steps since its start
	}
	return one("after the checkpoint of step %d it did step %d, and left out step %d", e.Disturbance.Resumed, e.begin, want)
}

// firstAfterResume returns which step comes after the checkpoint that the run
// resumed from: its last checkpoint says whether its steps count from 0, and
// whether names count the steps that are done.
func (e *evidence) firstAfterResume() (step int64, known bool) {
	if e.Disturbance == nil || e.Disturbance.Resumed <= 0 || len(e.saved) == 0 {
		return 0, false
	}
	counted := e.saved[len(e.saved)-1] - e.reference.last
	switch {
	case counted != 0 && counted != 1:
		return 0, false
	case e.saveFirst:
		return e.Disturbance.Resumed, true
	}
	return e.Disturbance.Resumed + 1 - counted, true
}

// independent finds parts that do not depend on the weights, and differ.
func (e *evidence) independent() (found []Cause) {
	for _, p := range parts {
		if why := e.seen[p]; why != "" && !p.depends && (p != partSchedule && p != partScaler || e.early(p)) {
			found = append(found, Cause{p.name, "it does not depend on the weights, and differs: " + why})
		}
	}
	if e.seen[partData] != "" {
		// Other examples draw other numbers; other numbers do not change how many
		// examples were seen.
		slices.SortStableFunc(found, func(a, b Cause) int { return cmp.Compare(rank(a), rank(b)) })
	}
	return found
}

// rank puts the random state after all others.
func rank(c Cause) int {
	if c.Name == partRandom.name {
		return 1
	}
	return 0
}

// early reports whether the curves of a part, if there are any, differ no later than
// all others: a schedule may follow the loss.
func (e *evidence) early(p *part) bool {
	for _, c := range e.Difference.Curves {
		if partOf(path.Base(c.Tag)) == p {
			return c.from() <= e.Difference.Curves[0].from()+1
		}
	}
	return true
}

// accumulation finds gradients of several steps that were being added up when the
// checkpoint was written: the loss differs only from the next update on.
func (e *evidence) accumulation() []Cause {
	line, ok := e.lineWith(partAccum)
	if !ok || e.begin < 0 || len(e.training) == 0 || e.training[0].from() <= e.begin || e.reference.spacing() > 1 {
		return nil
	}
	first := e.training[0]
	found := []Cause{{partAccum.name, fmt.Sprintf("steps %d to %d, the first after the restart, give the same %s as undisturbed; step %d does not: "+
		"the gradients of the steps before the checkpoint are missing from the next update; the script has: %s", e.begin, first.from()-1, first.Tag, first.from(), line)}}
	return append(found, e.optimizer()...)
}

// optimizer finds weights that were restored, while what changes them was not: the
// first step gives the same loss, the next does not.
func (e *evidence) optimizer() []Cause {
	if e.begin < 0 || len(e.training) == 0 {
		if why := e.seen[partOptimizer]; why != "" && e.seen[partWeights] == "" {
			return []Cause{{partOptimizer.name, "the weights do not differ: " + why}}
		}
		return nil
	}
	first := e.training[0]
	if first.from() <= e.begin || first.from() > e.begin+2*max(e.reference.spacing(), 1) {
		return nil
	}
	return e.updates(fmt.Sprintf("step %d, the first after the restart, gives the same %s as undisturbed; step %d does not: the weights were restored, what updates them was not",
		e.begin, first.Tag, first.from()))
}

// updates returns what may be wrong with the updates of the weights.
func (e *evidence) updates(why string) []Cause {
	optimizer, schedule := Cause{partOptimizer.name, why}, Cause{partSchedule.name, why}
	line, averages := e.lineWith(partEMA)
	switch {
	case averages && e.restoredCounter(): // and so the optimizer was restored
		return []Cause{{partEMA.name, why + "; the script has: " + line}, optimizer}
	case e.reportsSchedule(): // and it does not differ
		return []Cause{optimizer}
	case e.mentions(partSchedule) && (!e.mentionsMoments() || e.restoredCounter()):
		return []Cause{schedule, optimizer}
	case e.mentions(partSchedule):
		return []Cause{optimizer, schedule}
	}
	return []Cause{optimizer}
}

// reportsSchedule reports whether there is a curve of the learning rate.
func (e *evidence) reportsSchedule() bool {
	for tag := range e.reference.curves {
		if partOf(path.Base(tag)) == partSchedule {
			return true
		}
	}
	return false
}

// drawn are the parts that choose the examples and draw random numbers, the likeliest
// first. The training repeats itself, so a seed that differs with each start is unlikely,
// unless it is known to.
func (e *evidence) drawn() []*part {
	all := []*part{partRandom, partShuffle, partData}
	if e.mentions(partShuffle) {
		all = []*part{partData, partRandom, partShuffle}
	}
	if e.mentions(partEnv) { // which no framework saves
		all = append([]*part{partEnv}, all...)
	}
	switch {
	case e.hasRestored(partDropout):
		return all
	case e.hasRestored(partRandom): // maybe the framework's, from which its dropout comes: then another generator was forgotten
		return append(all, partDropout)
	}
	return append([]*part{partDropout}, all...)
}

// inputs finds a first step that gives another loss already: its examples, or the
// random numbers that it drew, are others.
func (e *evidence) inputs() (found []Cause) {
	if len(e.training) > 0 && e.begin >= 0 && e.training[0].from() > e.begin+2*max(e.reference.spacing(), 1) {
		return nil
	}
	why := "the first step after the restart differs already: its examples, or the random numbers that it draws, are others"
	if e.exact > 0 {
		return e.placeInData(why)
	}
	found = e.inScript(e.drawn(), why)
	if len(found) == 0 {
		found = []Cause{{partData.name, why}, {partRandom.name, why}}
	}
	return found
}

// inScript returns the parts that lines of the script have to do with.
func (e *evidence) inScript(parts []*part, why string) (found []Cause) {
	for _, p := range parts {
		line, ok := e.lineWith(p)
		switch {
		case ok && p == partEnv:
			found = append(found, Cause{p.name, why + "; each start makes a new environment, which begins another episode, and no checkpoint of a library has its state: " +
				"save that and its random generator, or expect a training that continues and is not the same; the script has: " + line})
		case ok:
			found = append(found, Cause{p.name, why + "; the script has: " + line})
		}
	}
	return found
}

// placeInData is the cause where other runs have resumed exactly: all that does not depend
// on the step was restored.
func (e *evidence) placeInData(why string) []Cause {
	return []Cause{{partData.name, why + "; runs that resumed from other steps are the same, so it depends on the place within the data"}}
}
