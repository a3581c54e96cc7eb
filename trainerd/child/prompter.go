package child

import (
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// prompter decides when the program is asked to save. Saves that the program makes by itself count
// too.
type prompter struct {
	every  time.Duration // 0 for not by the clock
	steps  int64         // 0 for not by steps
	budget trainerd.SaveBudget
	lead   time.Duration // from a request until the program gets it, which is at risk but no part of a save

	took    time.Duration // by the newest save that was asked for; the program may make no steps meanwhile
	risky   bool          // the log has that the limit of the work at risk is not kept
	since   time.Time     // when the newest checkpoint was begun, or the first step was made
	covered int64         // the step that it has
	step    int64         // made, -1 before the first report of a start

	asked     time.Time // when the program gets or got the request for what has not come, zero for none
	askedStep int64     // the step that it had made then
}

// begin prepares for a start of the program.
func (p *prompter) begin() { p.step, p.asked, p.askedStep = -1, time.Time{}, 0 }

// trained records the newest step.
func (p *prompter) trained(step int64, now time.Time) {
	if p.step < 0 {
		p.since, p.covered = now, step-1
	}
	p.step = step
}

// saved records a complete checkpoint, which may be the one that was requested. Its files are dated
// by the clock of the disk, which may be set or belong to another host, so from here on only its
// age counts. If the program has one name for all checkpoints, the step is not known: the
// checkpoint may be older than the newest steps, and then lacks them.
func (p *prompter) saved(c Checkpoint, lacks, isAnswer bool, now time.Time) {
	begun, step := now.Add(-max(now.Sub(c.Saved), 0)), c.At()
	switch {
	case step != found.NoStep:
	case !lacks:
		step = p.step
	case isAnswer:
		step = p.askedStep
	}
	if isAnswer {
		begun, p.took = p.asked, max(begun.Sub(p.asked), 0)
		p.asked = time.Time{}
	}
	if begun.After(p.since) {
		p.since = begun
	}
	p.covered = max(p.covered, step)
}

// due reports whether the program is to be asked now. If it has not answered the last request, but
// has made steps since, it is asked again when the next save is due.
func (p *prompter) due(now time.Time) bool {
	switch {
	case p.step < 0 || p.step <= p.covered:
		return false // it may not know the signal yet, and die of it; or there is nothing new
	case p.isAsked() && p.step == p.askedStep:
		return false // it may be saving, and would save the step once more
	}
	now = now.Add(p.lead)
	last := p.since
	if p.asked.After(last) {
		last = p.asked
	}
	since := now.Sub(last)
	if pause := p.budget.Pause(p.every, p.took); pause > 0 && since >= max(pause, 2*p.took) {
		return true // and has had as long for steps as for the last save
	}
	passed := p.steps > 0 && p.step/p.steps > max(p.covered, p.askedStep)/p.steps
	return passed && p.budget.Allows(since, p.took)
}

// ask records that the program was asked.
func (p *prompter) ask(now time.Time) { p.asked, p.askedStep = now.Add(p.lead), p.step }

// isAsked reports whether a requested checkpoint has not come yet.
func (p *prompter) isAsked() bool { return !p.asked.IsZero() }

// warnRisk reports, once, that a crash may lose more than it should.
func (r *run) warnRisk() {
	p := &r.prompter
	least, kept := p.budget.LeastRisk(p.took, p.took)
	if kept || p.risky {
		return
	}
	p.risky = true
	r.log.Warn("the program takes so long to save that a crash may lose more work than the limit allows; raise the limit, or have it save less or faster",
		"limit", p.budget.MaxRisk, "at_risk", least)
}

// noteSave tells the prompter about a checkpoint.
func (r *run) noteSave(c Checkpoint) {
	p := &r.prompter
	isAnswer := p.isAsked() && !r.precedes(c, p.asked, p.askedStep)
	p.saved(c, r.lacksSteps(c, r.attempt.step), isAnswer, time.Now())
}

// prompt makes the program save if that is due.
func (r *run) prompt() {
	now := time.Now()
	if r.attempt.paused || r.attempt.ending != nil || !r.prompter.due(now) {
		return
	}
	r.prompter.ask(now)
	r.log.Debug("asking the program to save", "step", r.attempt.step)
	r.checkSaveSignal(r.askToSave())
}
