package child

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// follower runs the program on a worker's node: whenever the chief starts it, from the checkpoint
// that the chief names. It does not change the chief's files. It belongs to the goroutine of Run.
type follower struct {
	*run
	chief         string // whose lock was seen last
	reports       <-chan queued
	at            start     // that was begun last
	stopRequested time.Time // when this process was asked to stop, zero before
	closing       time.Time // when the chief's program was seen to have succeeded, zero before
	unled         time.Time // when no chief was there any more, zero while there is one
	passes        forwarder
	passErr       error     // of the last try
	mute          bool      // the reports of another node count
	idle          time.Time // since when the chief has started no program here, zero while it has or the job is paused
	said          time.Time // when the log last had that
	refused       bool      // the disk does not take that a start is to begin here
	taken         time.Time // when it did, after that
	exit          Exit      // of the newest start
	result        error

	promoted bool // no chief is left
}

// unledChecks is how many checks in a row must find no chief before a worker takes its place: a
// chief notices at its next check that its lock file was removed.
const unledChecks = 3

// follow acts as a worker until the job ends, ctx is done, or there is no chief any more: then
// promoted is true, and the caller tries to become the chief.
func (sv *Supervisor) follow(ctx context.Context, chief logdir.Holder) (exit Exit, promoted bool, err error) {
	r := sv.newRun(ctx)
	r.follows = true
	if r.logdir, err = filepath.Abs(sv.Logdir); err != nil {
		return Exit{}, false, err
	}
	if err := r.joinNodes(); err != nil {
		return Exit{}, false, lostIfGone(r.logdir, err)
	}
	if err := r.endLeftovers(ctx, sv.patienceWithLeftovers()); err != nil {
		return Exit{}, false, err
	}
	r.log.Info("another node is the chief; this one follows it", "node", sv.Node, "nodes", sv.Nodes, "chief", chief)
	f := &follower{run: r, chief: lifeOf(chief)}
	f.endEarlier()
	promoted, err = f.loop(ctx)
	if promoted {
		r.log.Warn("the chief is gone; this node takes its place", "node", sv.Node, "was", f.chief)
	}
	return f.exit, promoted, err
}

// endEarlier tells the chief that a start has ended here together with the trainerd that had begun
// it, because nobody else does. This trainerd takes part in the next start.
func (f *follower) endEarlier() {
	var s nodeState
	if readJSON(f.nodes.nodeFile(f.nodes.own), &s); s.Phase == "" || s.Phase == nodeEnded {
		return
	}
	f.giveUp(s, "was ended with its trainerd")
}

// giveUp tells the chief that a start has ended here, which this trainerd does not run.
func (f *follower) giveUp(s nodeState, exit string) {
	f.at, s.Phase, s.Cause, s.Code, s.Exit = s.start, nodeEnded, Preempted, exitTempFail, exit
	f.send(s)
}

// loop follows the chief. It returns once the program will not run here again.
func (f *follower) loop(ctx context.Context) (promoted bool, err error) {
	defer f.logStalls()()
	defer f.sendLast()
	look := time.NewTicker(f.scanEvery())
	defer look.Stop()
	stop := ctx.Done()
	for ; ; f.turns.Add(1) {
		if over, err := f.decide(ctx); over {
			return f.promoted, errors.Join(err, f.result)
		}
		select {
		case said, ok := <-f.reports:
			for ; ok && said.report != nil; said, ok = f.next() {
				f.observer.Reported(said.report)
				f.passes.add(said.report)
			}
			f.forward()
			if !ok {
				f.ended(ctx)
			}
		case <-look.C:
			f.logEnding()
			f.endRanks()
			f.logIdle()
			f.reapOrphans()
			f.nodes.resend()
		case <-stop:
			stop, f.stopRequested = nil, time.Now()
			if f.reports != nil {
				f.tell(nodeEnding)
			}
		case <-f.attempt.saveDue:
			f.sendDueSave()
		case <-f.ends():
			f.enter(f.attempt.ending.stage + 1)
		}
	}
}

// endRanks ends the processes that a failed launcher has left: the chief is told of the failure
// once their outputs have ended.
func (f *follower) endRanks() {
	if f.attempt.process != nil && f.attempt.ending == nil {
		f.endAbandoned()
	}
}

// logIdle logs that the chief starts no program for long.
func (f *follower) logIdle() {
	now, job := time.Now(), f.nodes.job()
	paused := job.Paused && job.Chief == f.chief // else an earlier chief has; the disk may not have taken this one's state yet
	switch {
	case f.reports != nil || paused:
		f.idle = time.Time{}
	case f.idle.IsZero():
		f.idle, f.said = now, now
		f.observer.Waits("the chief to start the program")
	case now.Sub(f.said) >= logEvery:
		f.said = now
		f.log.Info("still waiting", "for", "the chief to start the program", "since", now.Sub(f.idle).Round(time.Second))
	}
}

// next returns a report that has already arrived, if there is one.
func (f *follower) next() (queued, bool) {
	select {
	case said, ok := <-f.reports:
		return said, ok
	default:
		return queued{}, true
	}
}

// decide does what the chief's state requires. It reports whether nothing is left to do.
func (f *follower) decide(ctx context.Context) (over bool, err error) {
	led, err := f.findChief()
	if err != nil {
		f.end()
		return f.reports == nil, err
	}
	job := f.nodes.job()
	known := job.Chief == f.chief
	f.mute = job.start == f.at && job.Speaker != nil && *job.Speaker != f.nodes.own
	f.followChief(job)
	f.withdraw(job)
	switch {
	case !f.stopRequested.IsZero() && (f.reports == nil || !led || !known || job.Phase != nodeRunning || time.Since(f.stopRequested) > f.grace()/2):
		f.exit.Cause = Stopped // the chief, where there is one, has saved by now
		return f.end(), nil
	case !f.stopRequested.IsZero():
		return false, nil
	case known && job.Phase.final():
		return f.finish(job), nil
	case !led && time.Since(f.unled) < unledChecks*f.scanEvery():
		return false, nil // it may be making its lock file again, which somebody has removed
	case !led:
		f.promoted = f.end()
		return f.promoted, nil
	case !known:
		f.end() // a new chief begins
	case job.Phase == nodeRunning && job.start != f.at:
		if f.end() && !job.Ending && f.announce(job.start) {
			return f.begin(ctx, job)
		}
	case job.Phase == nodeClosing:
		f.letEnd()
	case job.Phase != nodeRunning:
		f.end()
	}
	return false, nil
}

// findChief reports whether a process has the lock on the logdir.
func (f *follower) findChief() (led bool, err error) {
	if _, err := os.Stat(f.nodes.dir); errors.Is(err, os.ErrNotExist) {
		return false, lostIfGone(f.logdir, err)
	}
	locked, led := errors.AsType[*logdir.LockedError](logdir.Check(f.logdir))
	if led && locked.Holder.PID != 0 { // else it is about to come, or to go
		f.chief = lifeOf(locked.Holder)
	}
	switch {
	case led:
		f.unled = time.Time{}
	case f.unled.IsZero():
		f.unled = time.Now()
	}
	return led, nil
}

// lostIfGone returns an error of a logdir as a *logdir.LostError if the logdir is gone: only the
// chief may make it again, with its lock.
func lostIfGone(dir string, err error) error {
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return &logdir.LostError{Logdir: dir, Err: err}
}

// letEnd lets a program end by itself at the end of a job, for which it may take its time. It
// reports whether it has ended.
func (f *follower) letEnd() bool {
	if f.closing.IsZero() {
		f.closing = time.Now()
	}
	if f.reports != nil && time.Since(f.closing) < f.grace() {
		return false
	}
	return f.end()
}

// finish ends the follower when the job has ended.
func (f *follower) finish(job jobState) bool {
	switch job.Phase {
	case jobComplete:
		f.exit.Cause = Completed
		return f.letEnd()
	case jobStopped:
		f.exit.Cause = Stopped
	case jobFailed:
		f.result = &ChiefError{job.Host, job.Reason}
	}
	return f.end()
}

// end asks the program to end, and reports whether it has.
func (f *follower) end() bool {
	if f.reports == nil {
		return true
	}
	f.terminate()
	return false
}

// announce tells the chief that a start is about to begin here, and reports whether that is on the
// disk: otherwise the chief would not wait for the end of the start. If the disk was late, the
// chief's state here may be as old, so there is a pause for news to arrive.
func (f *follower) announce(at start) bool {
	own := f.nodes.nodeFile(f.nodes.own)
	if begins := (nodeState{start: at, Phase: nodeRunning, Host: hostname()}); f.nodes.states[own] != begins {
		f.send(begins)
	}
	switch {
	case f.nodes.unsent[own] != nil:
		f.refused = true
		return false
	case f.refused:
		f.refused, f.taken = false, time.Now()
	}
	return time.Since(f.taken) >= newsTime
}

// withdraw tells the chief that a start which was announced here has not begun, if that start is
// over: the announcement may have reached the disk too late, and the chief would wait for its end.
func (f *follower) withdraw(job jobState) {
	s, announced := f.nodes.states[f.nodes.nodeFile(f.nodes.own)].(nodeState)
	if !announced || s.start == f.at || job.Chief == "" || job.start == s.start && job.Phase == nodeRunning {
		return
	}
	f.giveUp(s, "was not started")
}

// sendLast tries for a while to send the last state, except that of a start that was announced but
// has not begun.
func (f *follower) sendLast() {
	own := f.nodes.nodeFile(f.nodes.own)
	if s, ok := f.nodes.states[own].(nodeState); ok && s.start != f.at {
		delete(f.nodes.states, own)
		delete(f.nodes.unsent, own)
	}
	f.nodes.sendLast()
}

// begin starts the program as the chief has started it.
func (f *follower) begin(ctx context.Context, job jobState) (over bool, err error) {
	f.at, f.run.job, f.attempts = job.start, job, job.Attempt
	f.closing, f.passes = time.Time{}, forwarder{}
	f.attempt = attempt{step: -1, given: job.checkpoint(f.logdir), save: job.Save}
	f.observer.Started(f.attempts, f.attempt.given)
	a, err := f.listenAndLaunch(ctx)
	if err != nil {
		f.exit = Exit{Attempt: f.attempts, Cause: Failed, Code: notStartedCode, Step: -1}
		f.tell(nodeEnded) // the chief knows that it was to begin here
		if !isRetried(err, f.attempts) {
			return true, err
		}
		f.log.Error("the program cannot be started", "err", err)
		return false, nil
	}
	f.attempt.process, f.reports = a, a.reports
	f.log.Info("started", "pid", a.program.PID(), "attempt", a.number, "checkpoint", f.givenPath(), "chief", job.Host)
	return false, nil
}

// checkpoint returns the checkpoint that the chief has chosen, or nil for none.
func (j *jobState) checkpoint(logdir string) *Checkpoint {
	if j.Checkpoint == "" {
		return nil
	}
	return &Checkpoint{Path: filepath.Join(logdir, filepath.FromSlash(j.Checkpoint)), Step: j.Step}
}

// forward passes reports on to the chief, unless it takes those of another node.
func (f *follower) forward() {
	if f.mute {
		f.passes.waiting = nil
	}
	if len(f.passes.waiting) == 0 {
		return
	}
	before := f.passErr
	f.passErr = f.passes.send(f.nodes, f.at)
	if f.passErr != nil && before == nil {
		f.log.Error("cannot pass the reports of the program to the chief; trying again with the next ones", "err", f.passErr)
	}
}

// ended records the end of the program and reports it to the chief.
func (f *follower) ended(ctx context.Context) {
	a := f.attempt.process
	a.closeSocket()
	f.attempt.process, f.reports = nil, nil
	if a.exit.Code != 0 || f.attempt.ending != nil {
		f.endRest(ctx, a)
	}
	f.attempt.ending = nil // the chief may take longer, and nobody is left to be killed
	f.exit = a.exit
	f.exit.Cause = causeOf(&f.exit, !f.stopRequested.IsZero(), false)
	f.log.Info("the program "+f.exit.String(), "cause", f.exit.Cause)
	f.observer.Ended(f.exit, false, 0)
	f.tell(nodeEnded)
}

// tell reports the state of the program on this node to the chief.
func (f *follower) tell(p phase) {
	s := nodeState{start: f.at, Phase: p, Host: hostname()}
	if p == nodeEnded {
		s.Cause, s.Code, s.Exit = f.exit.Cause, f.exit.Code, f.exit.String()
	}
	f.send(s)
}

func (f *follower) send(s nodeState) {
	if err := f.nodes.send(f.nodes.nodeFile(f.nodes.own), s); err != nil {
		f.log.Error("cannot report the state of the program to the chief", "phase", s.Phase, "err", err)
	}
}

// ChiefError says that the job has ended with an error on the node of its chief.
type ChiefError struct {
	Host   string
	Reason string
}

func (e *ChiefError) Error() string { return "the chief, on " + e.Host + ", has ended: " + e.Reason }

// followChief does on a worker's node what the chief does with its running program: it makes it
// save, or pauses it.
func (f *follower) followChief(job jobState) {
	if f.attempt.process == nil || job.start != f.at || job.Chief != f.chief {
		return
	}
	if job.Save.Number > f.attempt.save.Number && f.SaveSignal != 0 {
		f.attempt.saveDue = time.After(min(time.Until(job.Save.At), newsTime)) // clocks may differ
	}
	f.attempt.save = job.Save
	if job.Paused == f.attempt.paused || job.Paused && f.attempt.ending != nil {
		return
	}
	sig := system.SigCont
	if job.Paused {
		sig = system.SigStop
	}
	f.checkSignal(f.sendAll(sig))
	f.attempt.paused = job.Paused
	f.observer.Paused(job.Paused)
}
