package child

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// The stages of a requested end. A launcher that gets SIGTERM together with its
// workers kills them after its own time limit, so the program comes first: the
// processes that it has started get the signal from the program, or after it has
// ended.
const (
	asksToSave  = iota // the program got SaveSignal
	toldProgram        // the program got SIGTERM
	toldGroup          // all got SIGTERM
	killed             // all got SIGKILL
)

// ending is the end of a start that this process has requested.
type ending struct {
	begun time.Time
	step  int64 // that the program had reported then, -1 for none
	stage int
	next  <-chan time.Time // when the next stage is due
	saved bool             // a checkpoint came since it began
	said  time.Duration    // how long it had taken when the log last said that it is waited for
	left  bool             // the log has named the leftover processes that are waited for
}

func (r *run) newEnding() *ending { return &ending{begun: time.Now(), step: r.attempt.step} }

// logEvery is the time between two log lines about an end that takes long.
const logEvery = 15 * time.Second

// logEnding logs that an end takes long.
func (r *run) logEnding() {
	e := r.attempt.ending
	if e == nil {
		return
	}
	if r.logLeftovers(); time.Since(e.begun)-e.said < logEvery {
		return
	}
	e.said = time.Since(e.begun)
	what := "the program to end"
	if a := r.attempt.process; a != nil && a.outlived() > 0 {
		what = "the end of what the program has left running"
	}
	r.log.Warn("still waiting", "for", what, "since", e.said.Round(time.Second))
}

// logLeftovers logs once which leftover processes an end waits for.
func (r *run) logLeftovers() {
	e, a := r.attempt.ending, r.attempt.process
	if e.left || a == nil || a.outlived() < usualEnd {
		return
	}
	e.left = true
	if left := r.system().Leftovers(r.groupDir); len(left) > 0 {
		r.log.Warn("the program has ended; waiting for processes that it has left and that SIGTERM has not ended yet", "pids", left, "limit", leftoverGrace)
	}
}

// usualEnd is how long leftover processes may take to end before the log names them.
const usualEnd = time.Second

// endOutliving kills processes that outlive a program which has failed, or has saved everything and
// ended: data loaders may ignore SIGTERM. Before the save is complete, they may be the ones that
// write it.
func (r *run) endOutliving() {
	e := r.attempt.ending
	if e == nil {
		r.endAbandoned()
		return
	}
	if !e.saved || e.stage == killed || r.attempt.process.outlived() < leftoverGrace {
		return
	}
	r.enter(killed)
}

// terminate asks the program to end, after a save if it has a signal for that and something new to
// save. A second call does nothing.
func (r *run) terminate() {
	if r.attempt.ending != nil {
		return
	}
	r.attempt.ending = r.newEnding()
	r.unfreeze()
	if r.canSaveFirst() && r.askToSave() == nil {
		r.log.Info("asked the program to save before it is stopped", "step", r.attempt.step)
		r.prompter.ask(r.attempt.ending.begun)
		r.enter(asksToSave)
		return
	}
	r.enter(toldProgram)
}

// canSaveFirst reports whether to ask the program for a save first. Before its first
// report it may not handle the signal yet.
func (r *run) canSaveFirst() bool {
	return r.SaveSignal != 0 && r.Checkpoints != "" && r.grace() > 0 && !r.attempt.hung && r.attempt.step >= 0 && r.attempt.step > r.prompter.covered
}

// enter begins a stage.
func (r *run) enter(stage int) {
	e, share := r.attempt.ending, 0.5
	if e.stage == asksToSave && stage == toldProgram && r.canSaveFirst() {
		share = 0.75 // the save has had a half
	}
	e.stage = stage
	switch stage {
	case toldProgram:
		r.tellNodes()
		r.checkSignal(r.attempt.process.terminate())
		if system.SigCont != 0 { // a stopped process does not see SIGTERM, and others may have stopped it
			r.checkSignal(r.sendAll(system.SigCont))
		}
	case toldGroup:
		share = 1
		r.checkSignal(r.attempt.process.send(system.SigTerm))
	case killed:
		switch {
		case r.lost != nil: // it is given no time, which the loss explains
		case r.attempt.process.outlived() > 0:
			r.log.Warn("processes that the program has left running have not ended in time; killing them", "after", r.attempt.process.outlived().Round(time.Second))
		default:
			r.log.Warn("the program has not ended in time; killing it", "grace", r.grace())
		}
		r.killAll()
		e.next = nil
		return
	}
	e.next = time.After(time.Until(e.begun.Add(time.Duration(share * float64(r.grace())))))
}

// killAll kills the program and everything that it has started: processes in their own sessions
// would continue to write until their output is drained.
func (r *run) killAll() {
	r.checkSignal(r.attempt.process.kill())
	r.system().SignalAll(r.groupDir, r.system().Leftovers(r.groupDir), system.SigKill)
}

// ends returns when the next stage of an end is due, nil for never.
func (r *run) ends() <-chan time.Time {
	if r.attempt.ending == nil {
		return nil
	}
	return r.attempt.ending.next
}

// savedAtTheEnd records that a checkpoint was written during an end. A program may number its
// checkpoints one step higher than its reports.
func (r *run) savedAtTheEnd(c Checkpoint) {
	e := r.attempt.ending
	if e == nil || r.precedes(c, e.begun, e.step) || r.lacksAtTheEnd(c) && !e.isFrom(c) {
		return
	}
	e.saved = true
	if e.stage == asksToSave && r.attempt.process != nil && !lacksByName(c, e.step) { // else another may follow, while there is time
		r.enter(toldProgram)
	}
}

// diskTick is the resolution of a kernel's file times: a file written right after a signal may have
// a time from just before it.
const diskTick = 10 * time.Millisecond

// isFrom reports whether a checkpoint was written since the end began, or has all steps that were made by then.
func (e *ending) isFrom(c Checkpoint) bool {
	if c.NamesStep() && e.step >= 0 {
		return c.Saved.After(e.begun) || c.Step >= e.step
	}
	return c.Saved.Add(diskTick).After(e.begun)
}

// lacksAtTheEnd reports whether a checkpoint lacks steps that were made before an end
// began. A program that reports nothing makes some all the time.
func (r *run) lacksAtTheEnd(c Checkpoint) bool {
	if r.attempt.step < 0 {
		return c.Saved.Add(inFlight).Before(r.attempt.ending.begun)
	}
	return r.lacksSteps(c, r.attempt.step-1)
}

// inFlight is how long a report may take to arrive, or how much the clock of a disk may lag.
const inFlight = 100 * time.Millisecond

// lacksSteps reports whether a checkpoint lacks steps up to the given one. If its name has no step,
// it does if two reports have come since it was saved, because the first of them may be of the
// saved step.
func (r *run) lacksSteps(c Checkpoint, step int64) bool {
	if !c.NamesStep() {
		return c.Saved.Add(inFlight).Before(r.attempt.beforeLast)
	}
	return c.Step < step
}

// coversAll reports whether a checkpoint has everything that the program has done. A program that
// reports nothing is assumed to have done more than its newest checkpoint has, unless that was its
// last act.
func (r *run) coversAll(c Checkpoint) bool {
	if r.attempt.step < 0 {
		return r.Steps > 0 && c.Step >= r.Steps
	}
	return !r.lacksSteps(c, r.attempt.step)
}

// SaveLostError says that a stopped program has lost its last steps: it was asked to end, and wrote
// no verified checkpoint of them.
type SaveLostError struct {
	Step   int64  // of the last report, -1 for none
	Newest string // the newest verified checkpoint, "" for none
	Saved  int64  // its step, NoStep where its name has none
}

func (e *SaveLostError) Error() string {
	at := ""
	if e.Step >= 0 {
		at = fmt.Sprintf(" at step %d", e.Step)
	}
	lost := " and has saved nothing"
	switch {
	case e.Newest != "" && e.Saved == found.NoStep:
		lost = fmt.Sprintf(" without saving; it continues from %s", e.Newest)
	case e.Newest != "":
		lost = fmt.Sprintf(" without saving; it continues from step %d (%s)", e.Saved, e.Newest)
	}
	return "the program was stopped" + at + lost + "; have it save on SIGTERM, or set child.save_signal, and give it time by supervisor.stop_grace_secs"
}

// saveLost returns a [*SaveLostError] when a stop has lost steps.
func (r *run) saveLost(exit Exit) error {
	e := r.attempt.ending
	if r.Checkpoints == "" || e == nil || r.mayBeLoading() || r.lost != nil {
		return nil
	}
	if e.saved && (e.stage != killed || !r.trainedOn()) {
		return nil
	}
	c, ok := r.usable()
	if ok && c.OnTrial && exit.Signal != 0 && !r.savedOnTerm(c, exit) { // the signal may have come in the middle of it
		ok = false
	}
	if ok && r.coversAll(c) {
		return nil
	}
	lost := &SaveLostError{Step: r.attempt.step}
	if ok {
		lost.Newest, lost.Saved = c.Path, c.At()
	}
	return lost
}

// mayBeLoading reports whether a program has neither reported nor saved anything since its start.
// Then it has lost no steps, as long as the checkpoint that it should load exists.
func (r *run) mayBeLoading() bool {
	if r.hasTrained() {
		return false
	}
	_, ok := r.usable()
	return ok || r.attempt.given == nil
}

// trainedOn reports whether a program that had to be killed has done more steps after its last
// checkpoint: then it has not treated the signal to end as one to save.
func (r *run) trainedOn() bool {
	c, ok := r.usable()
	return !ok || r.lacksSteps(c, r.attempt.step-1)
}

// savedOnTerm reports whether a program that was ended by SIGTERM has written a checkpoint after
// the signal: then it has a handler that saves, and afterwards lets the signal end the program.
func (r *run) savedOnTerm(c Checkpoint, exit Exit) bool {
	return exit.Signal == syscall.SIGTERM && r.SaveSignal == 0 && c.Saved.After(r.attempt.ending.begun)
}

// isGone reports whether a signal was not delivered because the process has ended.
func isGone(err error) bool {
	return errors.Is(err, ErrNotRunning) || errors.Is(err, os.ErrProcessDone)
}
