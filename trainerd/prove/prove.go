// Package prove tests whether a training resumes exactly: it runs it undisturbed,
// then with kills, stops and a damaged newest checkpoint at moments that a seed
// chooses, each in its own logdir, and compares the results: the tensors of
// their checkpoints, and their curves.
//
// If a training is not deterministic even undisturbed, its numbers differ for
// other reasons. So if the runs differ, it is run undisturbed a second time, and
// differences between those two are ignored.
//
// The runs are processes of the command trainerd, as a user starts them, so that
// everything that happens at a restart happens here. The moments are steps, read
// from the control socket of a run, or times if a program reports no steps.
//
// # Goroutines
//
// Each run has one that reads the output of its process, and has ended with it.
package prove

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options describe the training and the proof.
type Options struct {
	// Command returns the command line of trainerd that trains in a logdir, and
	// resumes there; dir is the working directory of the program, "" for that of the
	// job.
	Command func(dir, logdir string) []string
	// Workdir, if not nil, makes each run work in its own folder.
	Workdir *Workdir
	Env     []string // in addition to that of this process
	// Program says that the command keeps a program alive: then the program is
	// killed, otherwise trainerd.
	Program bool
	// Pattern matches the checkpoints below the logdir; "" means those of a known
	// format.
	Pattern string
	// Source is the command line of a program and the text of its scripts, which
	// are searched for the likely cause of a difference.
	Source string
	// Below is the logdir of a run below its folder in Scratch, where all work in one folder
	// and that is not the logdir itself.
	Below string
	// Scratch is a folder for the logdirs.
	Scratch string
	// Runs is how many disturbed runs there are.
	Runs int
	// Seed chooses the moments.
	Seed uint64
	// Progress is called with a line for each action. It may be nil.
	Progress func(line string)
}

// Kind is a kind of disturbance.
type Kind string

// The kinds of disturbances.
const (
	Kill   Kind = "kill"   // SIGKILL
	Stop   Kind = "stop"   // SIGTERM, then a restart
	Damage Kind = "damage" // SIGKILL, and the newest checkpoint is cut short
)

// Disturbance describes what was done to a run.
type Disturbance struct {
	Kind Kind `json:"kind"`
	// Step is the step that the training had reached, -1 if unknown.
	Step int64 `json:"step"`
	// Resumed is the step of the checkpoint that the next start was given, 0 for
	// none.
	Resumed int64 `json:"resumed"`
	// Lost is how many steps were repeated.
	Lost int64 `json:"lost"`
	// given says that the next start was given a checkpoint.
	given bool
	// Damaged is the file that was cut short.
	Damaged string `json:"damaged,omitempty"`
	// cut is that file as it was left.
	cut fs.FileInfo
}

// FailedError says that a run did not complete.
type FailedError struct {
	Run    string // which one
	Code   int    // its exit code
	Output string // the end of what it printed
	// Limit is the time after which it was ended, because it hung; 0 if it was not.
	Limit time.Duration
	// LeftOut are checkpoints of the working directory that its copy does not have.
	LeftOut []string
}

// Error implements error.
func (e *FailedError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("%s has not ended within %v, many times what it takes undisturbed:\n%s", e.Run, e.Limit.Round(time.Second), e.Output)
	}
	const few = 5
	text := fmt.Sprintf("%s ended with exit code %d:\n%s", e.Run, e.Code, e.Output)
	if len(e.LeftOut) > 0 {
		text += "\nit ran in a copy of the folder, without what looks like checkpoints of an earlier training: " + strings.Join(e.LeftOut[:min(few, len(e.LeftOut))], ", ")
	}
	return text
}

// Run proves a training. The report has the result; an error means that the
// proof itself failed. If an undisturbed run fails, it is a [*FailedError].
func Run(ctx context.Context, o Options) (*Report, error) {
	p := &proof{Options: o, report: &Report{Seed: o.Seed}, least: defaultLeast}
	first, err := p.undisturbed(ctx, "undisturbed")
	if err != nil {
		return nil, err
	}
	p.reference = first
	p.report.Steps, p.report.Secs = first.last, first.took.Seconds()
	for i := range o.Runs {
		if err := p.disturbed(ctx, i); err != nil {
			return nil, err
		}
		if p.report.foundOther(p) >= 0 {
			break // the others would find something, too
		}
	}
	if p.report.foundOther(p) < 0 && p.report.differs() {
		p.say("something differs: running undisturbed once more, to see whether it repeats itself")
		again, err := p.undisturbed(ctx, "undisturbed-2")
		if err != nil {
			return nil, err
		}
		p.report.Undisturbed = 2
		noise := p.compare(again.logdir)
		p.compareWithout(noise.Tensors)
		p.report.excuse(noise, p.reference.curves)
	}
	p.report.judge(p)
	return p.report, nil
}

// proof is a call of Run.
type proof struct {
	Options
	reference *outcome
	report    *Report
	least     time.Duration // see patience
}

func (p *proof) say(format string, args ...any) {
	if p.Progress != nil {
		p.Progress(fmt.Sprintf(format, args...))
	}
}

// undisturbed runs the training without a disturbance.
func (p *proof) undisturbed(ctx context.Context, name string) (*outcome, error) {
	p.report.Undisturbed = max(p.report.Undisturbed, 1)
	o, err := p.run(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if o.failure != nil {
		return nil, o.failure
	}
	p.say("%s: %s in %.1f s", name, o.extent(), o.took.Seconds())
	return o, nil
}

// kinds are the disturbances in turn.
var kinds = []Kind{Kill, Stop, Damage}

// disturbed runs the training with a disturbance, and compares its results.
func (p *proof) disturbed(ctx context.Context, i int) error {
	kind := kinds[i%len(kinds)]
	random := rand.New(rand.NewPCG(p.Seed, uint64(i)))
	at := p.moment(random, kind)
	for try := 0; ; try++ {
		name := fmt.Sprintf("%s-%d", kind, i+1)
		if try > 0 {
			name += fmt.Sprintf("-again-%d", try)
		}
		o, err := p.run(ctx, name, &plan{kind: kind, at: at})
		if err != nil {
			return err
		}
		if o.missed && try < 2 { // it was too fast
			at.step, at.after = at.step/2, at.after/2
			continue
		}
		r := p.resultOf(name, o)
		p.say("%s", r.line())
		p.report.Runs = append(p.report.Runs, r)
		return nil
	}
}

// resultOf compares what a disturbed run has left.
func (p *proof) resultOf(name string, o *outcome) *Result {
	r := &Result{Name: name, Secs: o.took.Seconds(), Disturbance: o.done, restarts: o.restarts, Missed: o.missed, logdir: o.logdir}
	if o.failure != nil {
		r.Failure = o.failure.Error()
		return r
	}
	r.Difference = p.compare(o.logdir)
	r.forgiveCut(o.logdir)
	r.countLost(p.reference, stepsOfStates(p.reference.logdir, p.Pattern))
	r.compared = o.done != nil && p.comparesAfter(o.logdir, o.done.Resumed, nil)
	if d := o.done; d != nil && (d.Kind == Damage || d.Kind == Kill && !p.Program) {
		r.Difference.forgive(d.Step)
	}
	p.report.noteReports(r.forgiveReports(p.reference.curves))
	return r
}

// forgiveCut removes the differences in the file that was cut short, if that has not changed since:
// processes that had outlived trainerd have saved newer ones, so that nobody had to load it or to
// write it again.
func (r *Result) forgiveCut(logdir string) {
	d := r.Disturbance
	if d == nil || d.cut == nil {
		return
	}
	info, err := os.Stat(filepath.Join(logdir, d.Damaged))
	if err != nil || info.Size() != d.cut.Size() || !info.ModTime().Equal(d.cut.ModTime()) {
		return
	}
	r.Difference.Tensors = slices.DeleteFunc(r.Difference.Tensors, func(t Tensor) bool { return t.File == d.Damaged })
}

// countLost takes the step that a program resumed from from its first report, where
// the name of its checkpoint does not say it, or counts the saves or epochs. A program may
// have been given one, and have begun again all the same.
func (r *Result) countLost(reference *outcome, saved []int64) {
	d, n := r.Disturbance, len(r.restarts)
	if countsSaves := len(saved) > 0 && 2*saved[len(saved)-1] < reference.last; d != nil && n > 1 && countsSaves {
		if begin := r.restarts[n-1].first - reference.first; begin > d.Resumed+2*max(reference.spacing(), 1) {
			d.Resumed, d.Lost = begin, max(d.Step-begin, 0)
		}
	}
	if d != nil && n > 1 && d.Resumed > reference.first && r.restarts[n-1].first <= reference.first && reference.first < reference.last {
		d.Resumed, d.Lost = 0, d.Step
	}
	if d == nil || d.Resumed > 0 || n < 2 || r.restarts[n-1].first <= reference.first {
		return
	}
	d.Resumed = r.restarts[n-1].first - reference.first
	d.Lost = max(d.Step-d.Resumed, 0)
}

// comparesAfter reports whether a run has a checkpoint, from after a step, that the
// reference has too, and that is not among unread files.
func (p *proof) comparesAfter(logdir string, step int64, unread map[string]bool) bool {
	other := statesIn(logdir, p.Pattern)
	return slices.ContainsFunc(statesIn(p.reference.logdir, p.Pattern), func(name string) bool {
		at := stepOf(p.Pattern, name)
		return (at > step || at < 0) && slices.Contains(other, name) && !unread[(&Tensor{File: name}).key()]
	})
}

// compareWithout leaves out the files whose bytes differ between undisturbed runs, and whose
// tensors cannot be read: that they differ says nothing, so nothing is known of them. A run
// that has no others has no checkpoint to be compared.
func (p *proof) compareWithout(noise []Tensor) {
	unread := map[string]bool{}
	for _, t := range noise {
		if t.Name == "" {
			unread[t.key()] = true
		}
	}
	for _, x := range p.report.Runs {
		x.compared = x.compared && p.comparesAfter(x.logdir, x.Disturbance.Resumed, unread)
	}
}

// compare returns how what a run has left differs from the reference.
func (p *proof) compare(logdir string) Difference {
	return Difference{
		Tensors: diffStates(p.reference.logdir, logdir, p.Pattern),
		Curves:  diffCurves(p.reference.curves, curvesIn(logdir)),
	}
}

// moment is when a disturbance comes, once there are checkpoints: at a step, or, without steps, at
// a time after the start.
type moment struct {
	step  int64
	after time.Duration
	saved int // checkpoints, as far as the reference has so many
}

// stepOfSave returns at which step a training has so many checkpoints. A program may
// have removed its first ones; then those that are left tell how often it saves.
func stepOfSave(saved []int64, n int) int64 {
	if len(saved) < max(n, 2) {
		return 0
	}
	every := saved[1] - saved[0]
	for i, step := range saved[1:] {
		every = min(every, step-saved[i])
	}
	return min(saved[n-1], every*int64(n))
}

// moment chooses one after the first checkpoints, so that there is something to
// resume from, and before the end.
func (p *proof) moment(random *rand.Rand, kind Kind) moment {
	share := 0.25 + 0.65*random.Float64()
	saved := stepsOfStates(p.reference.logdir, p.Pattern)
	needs := 1
	if kind == Damage {
		needs = 2
	}
	m := moment{step: -1, after: time.Duration(share * float64(p.reference.took)), saved: min(needs, max(len(saved)-1, 0))}
	if len(saved) == 0 { // it may save over the same file
		m.saved = countSaved(p.reference.logdir, p.Pattern)
	}
	if p.reference.last <= p.reference.first {
		return m
	}
	low, high := p.reference.first, p.reference.last
	if at := stepOfSave(saved, needs); len(saved) > needs && at+1 < high-1 {
		low = at + 1
	}
	m.step = low + int64(share*float64(high-low))
	if high-low > 4 {
		m.step = low + 1 + random.Int64N((high-low)*9/10)
	}
	return m
}

// plan is a planned disturbance of a run.
type plan struct {
	kind Kind
	at   moment
}
