package prove

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Cause is why a training does not resume exactly, most likely.
type Cause struct {
	Name string `json:"name"`
	Why  string `json:"why"` // what speaks for it
}

// part is a part of the state of a training.
type part struct {
	name string
	// words are in the names of its tensors and curves.
	words *regexp.Regexp
	// depends says that it is another when the weights are.
	depends bool
}

// The parts of a state, by name. A name belongs to the first whose words it has.
var (
	partDropout   = &part{"dropout stream", regexp.MustCompile(`(?i)drop_?out`), false}
	partBest      = &part{"stale best", regexp.MustCompile(`(?i)best|patience|early_stop`), true}
	partEMA       = &part{"EMA of the weights", regexp.MustCompile(`(?i)(?:^|[^a-z])(?:ema|swa|polyak|shadow)(?:$|[^a-z])|averaged|moving_avg|ExponentialMovingAverage`), true}
	partScaler    = &part{"loss scaler", regexp.MustCompile(`(?i)scaler|loss_?scale|grad_?scale|growth_tracker|(?:^|[/_.])scale$`), false}
	partShuffle   = &part{"shuffle seed", regexp.MustCompile(`(?i)shuffl|perm(?:$|utation|[/_.])|sampler`), false}
	partRandom    = &part{"random state", regexp.MustCompile(`(?i)(?:^|[^a-z])rng|random|generator|mt19937|(?:^|[_/.])seed`), false}
	partSchedule  = &part{"schedule of the learning rate", regexp.MustCompile(`(?i)sched|learning_?rate|(?:^|[_/.])lr(?:$|[_/.])|warm_?up|last_epoch`), false}
	partOptimizer = &part{"optimizer state (moments)", regexp.MustCompile(`(?i)exp_avg|moment|adam|optim|slot|velocity|rmsprop|adagrad|(?:^|[/_.])[mv](?:$|[/_.])|beta\d_power`), true}
	partData      = &part{"data order", regexp.MustCompile(`(?i)cursor|position|(?:^|[_/.])pos$|offset|(?:^|[_/.])data|loader|(?:^|[_/.])(?:batch|sample|index|epoch|order|examples|seen)(?:$|/|_?(?:idx|index|pos|num|id|count|order))`), false}
	partStep      = &part{"step off by one", regexp.MustCompile(`(?i)(?:^|[/_.])(?:global_?)?(?:step|iteration|iter)s?$`), false}
	partWeights   = &part{"weights", regexp.MustCompile(``), true}

	parts = []*part{partDropout, partBest, partEMA, partScaler, partShuffle, partRandom, partSchedule, partOptimizer, partData, partStep, partWeights}
)

func partOf(name string) *part {
	i := slices.IndexFunc(parts, func(p *part) bool { return p.words.MatchString(name) })
	return parts[i]
}

// part returns which part of the state a tensor belongs to: by its name, or by that
// of its file.
func (t *Tensor) part() *part {
	if p := partOf(t.Name); p != partWeights && t.Name != "" {
		return p
	}
	base := path.Base(t.File)
	if p := partOf(strings.TrimSuffix(base, path.Ext(base))); slices.Contains([]*part{partBest, partEMA, partScaler, partRandom, partSchedule, partOptimizer}, p) {
		return p
	}
	return partWeights
}

// evidence is what one disturbed run shows.
type evidence struct {
	*Result
	reference *outcome
	saved     []int64 // steps of the reference's checkpoints
	source    string
	exact     int // other runs that resumed from a checkpoint and are the same

	seen  map[*part]string // parts that differ, and what shows it
	begin int64            // first step of the program after the disturbance, -1 if not known
}

// causes returns the likely causes of a difference, the likeliest first.
func (e *evidence) causes() []Cause {
	e.collect()
	for _, find := range []func() []Cause{e.alone, e.fromScratch, e.offByOne, e.independent, e.optimizer, e.inputs} {
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
		if t.Name == "" && !holdsState.MatchString(t.File) && t.File == "" {
			continue // the last checkpoint is of another step
		}
		if p := t.part(); e.seen[p] == "" {
			e.seen[p] = fmt.Sprintf("%s of %s: %s", t.Name, t.File, t.Reason)
		}
	}
	for _, c := range e.Difference.Curves {
		p := partOf(path.Base(c.Tag))
		if p == partStep {
			continue
		}
		if e.seen[p] == "" {
			e.seen[p] = fmt.Sprintf("the curve %s, from step %d", c.Tag, c.from())
		}
	}
}

// alone finds a part that differs and changes nothing else.
func (e *evidence) alone() (found []Cause) {
	for _, p := range []*part{partEMA, partBest, partScaler} {
		if why := e.seen[p]; why != "" {
			found = append(found, Cause{p.name, "nothing else differs: " + why})
		}
	}
	if len(found) != len(e.seen) {
		return nil
	}
	return found
}

// fromScratch finds a program that does not resume at all.
func (e *evidence) fromScratch() []Cause {
	d := e.Disturbance
	if d == nil || d.Resumed <= e.reference.first || e.begin != e.reference.first {
		return nil
	}
	return []Cause{{"no resume", fmt.Sprintf("it began at step %d again, though there was a checkpoint of step %d: it does not load what TRAINERD_CHECKPOINT names", e.begin, d.Resumed)}}
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
		case len(c.Missing) > 0:
			return one("%s has no step %d", c.Tag, c.Missing[0])
		case len(c.Extra) > 0 && c.Extra[0] > e.reference.last:
			return one("%s continues to step %d, want %d at most", c.Tag, c.Extra[0], e.reference.last)
		}
	}
	want, known := e.firstAfterResume()
	if !known || e.begin < 0 || e.begin == want {
		return nil
	}
	if e.begin < want {
		return one("after the checkpoint of step %d it did step %d, which that has already", e.Disturbance.Resumed, e.begin)
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
	if counted != 0 && counted != 1 {
		return 0, false
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
	return found
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

// optimizer finds weights that were restored, while what changes them was not: the
// first step gives the same loss, the next does not.
func (e *evidence) optimizer() []Cause {
	if e.begin < 0 || len(e.Difference.Curves) == 0 {
		if why := e.seen[partOptimizer]; why != "" && e.seen[partWeights] == "" {
			return []Cause{{partOptimizer.name, "the weights do not differ: " + why}}
		}
		return nil
	}
	first := e.Difference.Curves[0]
	if first.from() <= e.begin || first.from() > e.begin+2 {
		return nil
	}
	why := fmt.Sprintf("step %d, the first after the restart, gives the same %s as undisturbed; step %d does not: the weights were restored, what updates them was not",
		e.begin, first.Tag, first.from())
	found := []Cause{{partOptimizer.name, why}}
	if e.reportsSchedule() {
		return found // and it does not differ
	}
	switch schedule := (Cause{partSchedule.name, why}); {
	case e.mentions(partSchedule) && !e.mentions(partOptimizer):
		return []Cause{schedule, found[0]}
	case e.mentions(partSchedule):
		return append(found, schedule)
	}
	return found
}

// reportsSchedule reports whether there is a curve of the learning rate.
func (e *evidence) reportsSchedule() bool {
	for tag := range curvesIn(e.reference.logdir) {
		if partOf(path.Base(tag)) == partSchedule {
			return true
		}
	}
	return false
}

// inputs finds a first step that gives another loss already: its examples, or the
// random numbers that it drew, are others.
func (e *evidence) inputs() (found []Cause) {
	if len(e.Difference.Curves) > 0 && e.begin >= 0 && e.Difference.Curves[0].from() > e.begin+2 {
		return nil
	}
	why := "the first step after the restart differs already: its examples, or the random numbers that it draws, are others"
	if e.exact > 0 {
		return []Cause{{partData.name, why + "; runs that resumed from other steps are the same, so it depends on the place within the data"}}
	}
	for _, p := range []*part{partDropout, partShuffle, partRandom, partData} {
		if line, ok := e.lineWith(p); ok {
			found = append(found, Cause{p.name, why + "; the script has: " + line})
		}
	}
	if len(found) == 0 {
		found = []Cause{{partData.name, why}, {partRandom.name, why}}
	}
	return found
}

func (e *evidence) mentions(p *part) bool {
	_, ok := e.lineWith(p)
	return ok
}

// sourceWords are in scripts that have a part.
var sourceWords = map[*part]*regexp.Regexp{
	partDropout:   partDropout.words,
	partShuffle:   regexp.MustCompile(`(?i)shuffle|permutation|randperm|sampler`),
	partRandom:    regexp.MustCompile(`(?i)\brandom\.|\brng\b|np\.random|torch\.rand|noise|gauss|normal\(|augment`),
	partData:      regexp.MustCompile(`(?i)loader|dataset|\bdata\b|batch|iter\(`),
	partSchedule:  regexp.MustCompile(`(?i)sched|warm_?up|cosine|lr_?decay|lr_lambda`),
	partOptimizer: regexp.MustCompile(`(?i)adam|momentum|velocity|optim`),
}

// lineWith returns the first line of the source that has a part, without comments
// and imports.
func (e *evidence) lineWith(p *part) (string, bool) {
	for line := range strings.SplitSeq(e.source, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "from ") {
			continue
		}
		if sourceWords[p].MatchString(line) {
			return line[:min(len(line), 80)], true
		}
	}
	return "", false
}
