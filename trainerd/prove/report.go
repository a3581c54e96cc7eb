package prove

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/internal/lazyregexp"
)

// Verdict is the result of a proof.
type Verdict string

// The verdicts.
const (
	Same             Verdict = "same"             // every run gave the same result
	Differs          Verdict = "differs"          // a disturbed run gave a different result
	Fails            Verdict = "fails"            // a disturbed run did not complete
	NoResume         Verdict = "no resume"        // the training began from scratch, though there was a checkpoint
	Nondeterministic Verdict = "nondeterministic" // undisturbed runs differ as much
	Unproven         Verdict = "unproven"         // there was nothing to compare, or no run was disturbed
)

// Report is the report of a proof. Its JSON is part of the interface of the
// command.
type Report struct {
	Verdict     Verdict   `json:"verdict"`
	Seed        uint64    `json:"seed"`
	Steps       int64     `json:"steps"`       // the last one, -1 if unknown
	Secs        float64   `json:"secs"`        // of the undisturbed run
	Undisturbed int       `json:"undisturbed"` // how many undisturbed runs there were
	Runs        []*Result `json:"runs"`
	// Excused are curves and tensors that differ between undisturbed runs, too.
	Excused []string `json:"excused,omitempty"`
	// Sampled are curves whose points are at different steps in each undisturbed run
	// too, because progress bars are drawn by time.
	Sampled []string `json:"sampled,omitempty"`
	// Reports are curves whose reports start over at a restart, while the checkpoints
	// do not differ.
	Reports []string `json:"reports,omitempty"`
	// FirstStep is the first step that differs, -1 if unknown.
	FirstStep   int64   `json:"first_step"`
	FirstTensor *Tensor `json:"first_tensor,omitempty"`
	Causes      []Cause `json:"causes,omitempty"`
	// LostSteps is the mean per disturbance.
	LostSteps float64 `json:"lost_steps"`
	// Advancing is the share of the disturbed runs' time that advanced the model.
	Advancing float64  `json:"advancing"`
	Notes     []string `json:"notes,omitempty"`

	repeats bool   // of two undisturbed runs, all checkpoints are the same
	begins  string // a curve that differs between them from its first step on
}

// Result is a disturbed run.
type Result struct {
	Name        string       `json:"name"`
	Disturbance *Disturbance `json:"disturbance,omitempty"`
	Missed      bool         `json:"missed,omitempty"` // it ended before the disturbance
	Secs        float64      `json:"secs"`
	Failure     string       `json:"failure,omitempty"`
	Difference  Difference   `json:"difference"`

	restarts []restart
	compared bool // a checkpoint from after the disturbance
	logdir   string
}

// Difference is what differs from the undisturbed run.
type Difference struct {
	Tensors []Tensor `json:"tensors,omitempty"`
	Curves  []Curve  `json:"curves,omitempty"`
}

func (d *Difference) empty() bool { return len(d.Tensors) == 0 && len(d.Curves) == 0 }

func (r *Report) differs() bool {
	return slices.ContainsFunc(r.Runs, func(x *Result) bool { return !x.Difference.empty() })
}

// excuse takes what differs between undisturbed runs out of the results, unless it
// differs far more in them. Without that, the checkpoints of a run may be the same, so
// that its reports can be judged.
func (r *Report) excuse(noise Difference, reference curves) {
	const far = 100
	tensors, curves := map[string]manifest.Metric{}, map[string]manifest.Metric{}
	r.repeats = len(noise.Tensors) == 0
	for _, t := range noise.Tensors {
		tensors[t.key()] = max(tensors[t.key()], t.MaxAbs)
	}
	for _, c := range noise.Curves {
		if c.First >= 0 {
			curves[c.Tag] = max(curves[c.Tag], c.MaxAbs)
			if c.beginsWithOthers(reference[c.Tag]) && r.begins == "" {
				r.begins = c.Tag
			}
			continue
		}
		r.Sampled = append(r.Sampled, c.Tag)
		for _, x := range r.Runs {
			x.Difference.forgiveSteps(c.Tag)
		}
	}
	for _, x := range r.Runs {
		x.Difference.Tensors = slices.DeleteFunc(x.Difference.Tensors, func(t Tensor) bool {
			by, ok := tensors[t.key()]
			return ok && (by == 0 || t.MaxAbs <= far*by)
		})
		x.Difference.Curves = slices.DeleteFunc(x.Difference.Curves, func(c Curve) bool {
			by, ok := curves[c.Tag]
			return ok && (by == 0 || c.MaxAbs <= far*by)
		})
		r.noteReports(x.forgiveReports(reference))
	}
	for key := range tensors {
		file, name, _ := strings.Cut(key, "\x00")
		r.Excused = append(r.Excused, strings.TrimSpace(name+" of "+file))
	}
	r.Excused = append(r.Excused, slices.Collect(maps.Keys(curves))...)
	slices.Sort(r.Excused)
}

// noteReports keeps the names of curves whose reports alone differ.
func (r *Report) noteReports(tags []string) {
	for _, tag := range tags {
		if !slices.Contains(r.Reports, tag) {
			r.Reports = append(r.Reports, tag)
		}
	}
}

// judge comes to the verdict.
func (r *Report) judge(p *proof) {
	r.FirstStep = -1
	r.account()
	if step := r.foundOther(p); step >= 0 {
		r.Verdict = Unproven
		r.Notes = append(r.Notes, fmt.Sprintf("a run has begun at step %d, with what another had saved: it does not save below the logdir. "+
			"Have it save there, or set logdir to the folder below the working directory that it saves in", step))
		return
	}
	r.Verdict = Same
	var worst *Result
	for _, x := range r.Runs {
		if x.Failure != "" && r.Verdict != Fails {
			r.Verdict, worst = Fails, x
		}
		if !x.Difference.empty() && r.Verdict == Same {
			r.Verdict, worst = Differs, x
		}
	}
	switch {
	case r.Verdict == Same:
		r.qualify(p)
	case r.Verdict == Differs:
		r.explain(p, worst)
	case worst.Disturbance != nil:
		r.Causes = []Cause{causeOfFailure(worst)}
	}
}

// foundOther returns the step at which a run has begun though its logdir was empty,
// -1 for none.
func (r *Report) foundOther(p *proof) int64 {
	limit := (p.reference.first + p.reference.last) / 2
	if saved := stepsOfStates(p.reference.logdir, p.Pattern); len(saved) > 0 {
		limit = min(limit, max(saved[0], p.reference.first)) // unless the names count saves
	}
	if starts := p.reference.restarts; len(starts) > 0 {
		limit = max(limit, starts[0].first)
	}
	for _, x := range r.Runs {
		if len(x.restarts) > 0 && x.restarts[0].first > limit {
			return x.restarts[0].first
		}
	}
	return -1
}

// explain says where a difference begins, and why.
func (r *Report) explain(p *proof, x *Result) {
	if len(x.Difference.Tensors) > 0 { // a mean since the start says nothing next to these
		x.Difference.Curves = slices.DeleteFunc(x.Difference.Curves, func(c Curve) bool { return isClosingMean(c, p.reference.curves[c.Tag]) })
	}
	if len(x.Difference.Curves) > 0 {
		r.FirstStep = x.Difference.Curves[0].from()
	}
	e := &evidence{Result: x, reference: p.reference, saved: stepsOfStates(p.reference.logdir, p.Pattern), saveFirst: p.reference.savesFirst(p.Pattern), source: p.Source, pattern: p.Pattern}
	for _, other := range r.Runs {
		if d := other.Disturbance; other.Difference.empty() && other.Failure == "" && d != nil && d.Resumed > 0 {
			e.exact++
		}
	}
	r.Causes = e.causes()
	r.FirstTensor = firstTensor(x.Difference.Tensors, r.Causes[0].Name)
}

// firstTensor returns one of the first checkpoint that differs: of the part that is
// the cause, else of the weights, else the first.
func firstTensor(all []Tensor, cause string) *Tensor {
	var best *Tensor
	rank := func(t *Tensor) int {
		switch p := t.part(); {
		case p.name == cause:
			return 2
		case p == partWeights:
			return 1
		}
		return 0
	}
	for i := range all {
		if t := &all[i]; t.Step == all[0].Step && (best == nil || rank(t) > rank(best)) {
			best = t
		}
	}
	return best
}

// aboutTime are names of numbers that say when something was.
var aboutTime = lazyregexp.New(`(?i)_at\b|time|date|clock|sec|uuid|host|pid`)

// tally counts what became of the runs that were disturbed.
type tally struct {
	disturbed int
	resumed   int
	scratch   int // had a checkpoint, and began from scratch
}

// tally counts the disturbed runs of a report.
func (p *proof) tally(runs []*Result) (t tally) {
	for _, x := range runs {
		if x.Disturbance == nil {
			continue
		}
		t.disturbed++
		if n := len(x.restarts); n > 1 && x.Disturbance.given && x.restarts[n-1].first <= p.reference.first {
			t.scratch++
		}
		if x.Disturbance.Resumed > 0 || p.reference.last <= p.reference.first && (x.Disturbance.given || countSaved(p.reference.logdir, p.Pattern) > 0 && len(stepsOfStates(p.reference.logdir, p.Pattern)) == 0) {
			t.resumed++
		}
	}
	return t
}

// note adds a note.
func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// qualify says what a verdict "same" does not cover.
func (r *Report) qualify(p *proof) {
	tensors := len(statesIn(p.reference.logdir, p.Pattern))
	r.qualifyRuns(p.tally(r.Runs), tensors, len(curvesIn(p.reference.logdir)))
	if len(r.Reports) > 0 {
		r.note("the checkpoints are the same; these curves have points at other steps after a restart, or another first one, as means do: %s", strings.Join(r.Reports, ", "))
	}
	dependsOnMore := slices.ContainsFunc(r.Excused, func(name string) bool { return partOf(name).depends && !aboutTime().MatchString(name) })
	if !dependsOnMore || r.Verdict != Same || r.repeatsStates(tensors) {
		return
	}
	r.Verdict = Nondeterministic
	r.note("two undisturbed runs differ in the same tensors or curves, about as much: what they compute depends on more than the seed, so nothing can be said to the bit")
	r.Causes = (&evidence{source: p.Source}).seedOfStart()
	if r.begins != "" && len(r.Causes) == 0 {
		r.Causes = []Cause{{partRandom.name, "undisturbed runs differ in " + r.begins + " from the first step on: each start begins with other weights, or other data; seed all that they are drawn from"}}
	}
}

// qualifyRuns says what could not be compared, or was not disturbed: tensors and tags are how many
// states and curves the undisturbed run has left.
func (r *Report) qualifyRuns(t tally, tensors, tags int) {
	switch {
	case tensors == 0 && tags == 0:
		r.Verdict = Unproven
		r.note("the runs left neither checkpoints nor curves that could be compared: set child.checkpoints, and have it save below TRAINERD_LOGDIR")
	case t.disturbed == 0:
		r.Verdict = Unproven
		r.note("each run ended before it could be disturbed: give it more steps")
	case t.resumed == 0 && t.scratch > 0: // the others had none to resume from
		r.Verdict = NoResume
		r.note("each disturbance cost all steps, also where there was a checkpoint: have it load the checkpoint that TRAINERD_CHECKPOINT names, or set child.resume_args")
	case t.resumed == 0:
		r.Verdict = Unproven
		r.note("no run resumed: each began from scratch, and lost all its steps; see that child.checkpoints means what it saves below the logdir, " +
			"that it saves before it is disturbed, and that it loads what it has saved (`trainerd init -- PROGRAM` finds out)")
	case tensors == 0:
		r.note("no checkpoint could be compared, the curves alone: set child.checkpoints")
	case len(r.Sampled) > 0:
		r.note("these curves have points at other steps in each run, and were compared where two have the same: %s", strings.Join(r.Sampled, ", "))
	case tags == 0:
		r.note("it reports no curves; the checkpoints alone were compared")
	}
}

// repeatsStates reports whether the training repeats itself to the bit, by so many states:
// then it is its reports that do not, such as a progress bar that is drawn by time.
func (r *Report) repeatsStates(states int) bool {
	return states > 0 && r.repeats && !slices.ContainsFunc(r.Runs, func(x *Result) bool { return x.Disturbance != nil && !x.compared })
}

// account adds up lost steps and time.
func (r *Report) account() {
	var lost, secs float64
	n, runs := 0, 0
	for _, x := range r.Runs {
		if x.Disturbance != nil && x.Disturbance.Step >= 0 {
			lost += float64(x.Disturbance.Lost)
			n++
		}
		if x.Disturbance != nil && x.Failure == "" {
			secs += x.Secs
			runs++
		}
	}
	if n > 0 {
		r.LostSteps = lost / float64(n)
	}
	if secs > 0 {
		r.Advancing = min(r.Secs*float64(runs)/secs, 1)
	}
}

func (d *Disturbance) text() string {
	text := map[Kind]string{Kill: "a kill", Stop: "a stop", Damage: "a kill with the newest checkpoint damaged"}[d.Kind]
	if d.Step >= 0 {
		text += fmt.Sprintf(" at step %d", d.Step)
	}
	switch {
	case d.Damaged != "":
		text += " (" + d.Damaged + ")"
	case d.Kind == Damage:
		text += " (there was none)"
	}
	if d.Resumed > 0 {
		return fmt.Sprintf("%s, resumed from step %d", text, d.Resumed)
	}
	return text + ", began again"
}

// line is a result in one line.
func (x *Result) line() string {
	what := "it ended before it could be disturbed"
	if x.Disturbance != nil {
		what = x.Disturbance.text()
	}
	end := "the same"
	switch {
	case x.Failure != "":
		end = "FAILED"
	case !x.Difference.empty():
		end = fmt.Sprintf("DIFFERS in %d tensors and %d curves", len(x.Difference.Tensors), len(x.Difference.Curves))
	}
	return fmt.Sprintf("%s: %s: %s (%.1f s)", x.Name, what, end, x.Secs)
}

// Write writes the report for a person.
func (r *Report) Write(w io.Writer) error {
	say := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	say("%s", map[Verdict]string{
		Same:             "SAME: it resumes exactly",
		Differs:          "DIFFERS: it does not resume exactly",
		Fails:            "FAILS: it does not get through a restart",
		NoResume:         "NO RESUME: it begins from scratch, though there is a checkpoint",
		Nondeterministic: "NOT DETERMINISTIC: it resumes within what it varies by itself",
		Unproven:         "UNPROVEN",
	}[r.Verdict])
	if r.FirstStep >= 0 {
		say("first step that differs:    %d", r.FirstStep)
	}
	switch t := r.FirstTensor; {
	case t == nil:
	case t.File == "": // the checkpoints themselves
		say("what differs:               %s", t.Reason)
	default:
		say("first tensor that differs:  %s of %s: %s", strings.TrimSpace(t.Name+" "), path.Base(t.File), t.Reason)
	}
	for i, c := range r.Causes {
		label := "likely cause:"
		if i > 0 {
			label = "or:"
		}
		say("%-27s %s\n%-27s %s", label, c.Name, "", c.Why)
	}
	for _, x := range r.Runs {
		if x.Failure != "" {
			say("%s", x.Failure)
			break
		}
	}
	for _, note := range r.Notes {
		say("note: %s", note)
	}
	if len(r.Excused) > 0 {
		const few = 5
		say("not held against it, since two undisturbed runs differ there: %s", strings.Join(r.Excused[:min(few, len(r.Excused))], ", "))
	}
	say("steps lost by a disturbance: %.1f   time that advanced the model: %.0f %%   seed: %d", r.LostSteps, 100*r.Advancing, r.Seed)
	return nil
}
