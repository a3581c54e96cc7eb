package child

import (
	"context"
	"errors"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/system"
)

// attempt is one start of the program.
type attempt struct {
	process       *process    // nil before it has started, and once it has ended
	given         *Checkpoint // what the program should continue from, nil for none
	begun         time.Time
	step          int64     // of its last report, -1 for none
	furthest      int64     // step of all starts before, -1 for none
	lastProgress  time.Time // when the step last grew
	beforeLast    time.Time // when it grew the time before
	grewAt        time.Time // when it last grew, by the clock of the program
	progressed    bool      // it got further than all before
	saves         bool      // it has written a checkpoint
	paused        bool      // its processes are stopped
	hung          bool
	nan           *trainerd.NaNError // its loss is not finite; nil for no such
	purgedFrom    int64              // from which step on the program's events were dropped, notPurged for none
	eventFiles    *eventFiles        // of the program before this start
	marks         []string           // of a restart, among the program's events
	ending        *ending            // that was asked for, nil for none
	broken        *nodeState         // of the node that has ended it, nil for none
	save          saveRequest        // the newest of the chief's
	saveDue       <-chan time.Time   // when SaveSignal is sent, nil for never
	over          bool               // the program has ended on this node
	abandoned     bool               // what it has left when it failed has been ended
	deaf          bool               // the log has that nothing handles SaveSignal
	reportSource  *int               // the node whose reports count, nil while none has reported
	forwarded     map[int]*forwarded // by the other nodes
	started       bool
	endedWell     bool  // on its own will
	unsaved       error // what is lost if no start follows: a node that was stopped has ended the one before
	meter         rateMeter
	curvesFrom    int64                     // the step of the newest START
	reported      map[string]*reportedCurve // by curve; nil before the first report with numbers
	firstReported int64                     // the step of that
	held          []queued                  // of one step, which may be the first since the program has begun again
}

// isRunning reports whether the program runs on this node.
func (a *attempt) isRunning() bool { return a.process != nil && !a.over }

// once starts the program and serves it until it has ended.
func (r *run) once(ctx context.Context) (Exit, error) {
	r.await("the checkpoint to start from", func() { r.begin(ctx) })
	if ctx.Err() != nil || r.lost != nil { // a program that is stopped at once may save what it has not loaded yet
		e := Exit{Attempt: r.attempts, Cause: Stopped, Code: -1, Step: -1}
		r.observer.Ended(e, false, 0)
		return e, r.unsaved()
	}
	a, err := r.listenAndLaunch(ctx)
	if err != nil && isRetried(err, r.attempts) {
		return r.notStarted(ctx, err), nil
	}
	if err != nil {
		return Exit{}, err
	}
	defer a.closeSocket()
	r.attempt.process, r.attempt.started, r.attempt.unsaved = a, true, nil
	r.log.Info("started", "pid", a.program.PID(), "attempt", a.number, "checkpoint", r.givenPath())
	stopped := r.loop(ctx)
	r.attempt.over = true
	r.tellNodesOfEnd(&a.exit)
	if a.exit.Code != 0 || r.attempt.ending != nil {
		r.endRest(ctx, a)
	} else {
		a.exit.Left = r.leftRunning(ctx)
	}
	r.awaitParts(ctx)
	if r.lost == nil && r.lock.Held() == nil {
		r.remake() // what was deleted since the last scan
	}
	r.release()
	r.attempt.process = nil
	r.attempt.endedWell = endsWell(&a.exit) && r.endedWellOnNodes()
	if !r.leaveUnsettled(ctx, &a.exit) {
		r.settle()
	}
	r.warnOutside()
	r.withdrawMarks(r.attempt.marks)
	for _, s := range r.savers {
		close(s.saved)
	}
	r.savers = nil
	r.writeRate()
	return r.ended(a.exit, stopped)
}

// notStarted handles a start that failed but may succeed later.
func (r *run) notStarted(ctx context.Context, err error) Exit {
	r.log.Error("the program cannot be started", "err", err)
	r.publish(nodeEnded, "")
	r.awaitParts(ctx)
	e := Exit{Attempt: r.attempts, Cause: Failed, Code: notStartedCode, Step: -1}
	e.DiskFull = r.isDiskFull(&e)
	return e
}

// listenAndLaunch prepares a start, and starts the program.
func (r *run) listenAndLaunch(ctx context.Context) (*process, error) {
	ln, err := r.system().Listen()
	if errors.Is(err, system.ErrNoSockets) {
		r.logNoSocket(err)
		return r.launch(ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	a, err := r.launch(ctx, ln)
	if err != nil {
		ln.Close()
	}
	return a, err
}

// logNoSocket logs once that the program has no socket for its reports.
func (r *run) logNoSocket(err error) {
	if r.socketless {
		return
	}
	r.socketless = true
	r.log.Warn("the program is started without TRAINERD_SOCKET; what it reports is read from its outputs alone", "err", err)
}

// launch starts the program, which inherits the lock of its group. ln is nil if there is no socket.
func (r *run) launch(ctx context.Context, ln system.Listener) (*process, error) {
	lock, err := r.holdGroup(ctx)
	if err != nil {
		return nil, err
	}
	if lock != nil {
		defer lock.Close() // it is the program's then
	}
	a := &process{
		number: r.attempts, on: r.system(), dir: r.groupDir, listener: ln,
		patterns: r.Patterns, lines: r.lineReader(), out: r.out,
	}
	if err := a.start(r.command(addressOf(ln)), lock); err != nil {
		return nil, &StartError{r.Command, err}
	}
	return a, nil
}

// ended handles the end of a start, and determines its cause.
func (r *run) ended(e Exit, stopped bool) (Exit, error) {
	e.Step = r.attempt.step
	e.Cause = r.causeOnNodes(&e, causeOf(&e, stopped, r.attempt.hung))
	if e.Cause == Failed && e.Code == exitUsage && e.Attempt == 1 && !r.hasTrained() {
		e.Cause = Final
	}
	if r.attempt.nan != nil {
		err := r.rewind()
		if !stopped {
			e.Cause = Diverged
		}
		if !stopped && err != nil {
			r.observer.Ended(e, false, 0)
			return e, err
		}
	}
	if e.DiskFull = e.Cause == Failed && r.isDiskFull(&e); e.DiskFull {
		r.makeRoom()
	}
	if e.Cause == Completed && r.lost == nil {
		r.rotate() // what was there at the start has waited for a save, which need not have come
		r.addSums()
	}
	r.onExit(e)
	if e.Cause == Completed || e.Cause == Stopped {
		r.log.Info("the program "+e.String(), r.endAttrs(&e)...)
		r.observer.Ended(e, false, 0)
	}
	if e.Cause == Stopped {
		return e, r.saveLost(e)
	}
	if b := r.attempt.broken; b != nil && b.Phase == nodeEnding {
		r.attempt.unsaved = r.saveLost(e)
	}
	return e, nil
}

// addSums adds the checksums to the record of the job's last checkpoint, which saves in quick
// succession leave out.
func (r *run) addSums() {
	r.await("the checksums of the last checkpoint", func() {
		if err := r.store.AddSums(r.ectx); err != nil {
			r.log.Warn("checkpoint has no SHA-256 in its record", "err", err)
		}
	})
}

// hasTrained reports whether the program has reported or saved anything since its start.
func (r *run) hasTrained() bool { return r.attempt.step >= 0 || r.attempt.saves }

// unsaved returns the error for what a stop between two starts loses.
func (r *run) unsaved() error {
	if r.lost != nil {
		return nil
	}
	return r.attempt.unsaved
}

// endAttrs returns the attributes of the log line about the end of a start. Without reports, only
// what the program has saved shows how far it has come.
func (r *run) endAttrs(e *Exit) []any {
	attrs := []any{"cause", e.Cause}
	step := e.Step
	if step < 0 {
		step = r.maxStep
	}
	if step < 0 {
		return attrs
	}
	return append(attrs, "step", step)
}

// begin resets the state that is kept for a start.
func (r *run) begin(ctx context.Context) {
	if r.attempts++; r.attempts > 1 {
		r.bringBackGone(ctx)
	} else {
		r.awaitEarlier(ctx)
	}
	r.repairLatest(ctx)
	r.quarantineDamaged(ctx)
	r.bringBackLost(ctx)
	r.attempt = attempt{step: -1, furthest: r.maxStep, purgedFrom: notPurged, unsaved: r.attempt.unsaved, begun: time.Now()}
	r.choose(ctx)
	r.counts.begins(r.attempt.given)
	r.measured.forgetRepeated(r.attempt.given)
	r.rewinds.begin(r.attempt.given)
	r.purgeBefore(ctx)
	r.attempt.lastProgress = time.Now()
	r.prompter.begin()
	r.observer.Started(r.attempts, r.attempt.given)
	r.isLost() // another process may have taken the logdir while a large checkpoint was read
	r.publish(nodeRunning, "")
}

// choose chooses the newest intact checkpoint for a start.
func (r *run) choose(ctx context.Context) {
	c, ok := r.newest(ctx)
	if ok {
		r.attempt.given = &c
	}
	if ok && c.OnTrial {
		r.log.Info("nothing shows that the program has finished writing this checkpoint; it counts once the program has continued from it", "checkpoint", c.Path)
	}
}

// lineReader returns the reader of a start's lines, or nil if there is none.
func (r *run) lineReader() LineReader {
	switch {
	case r.Lines == nil:
		return nil
	case r.attempt.given == nil:
		return r.Lines(0)
	}
	return r.Lines(max(r.attempt.given.Reached(), r.store.ReachedBefore(r.attempt.given), 0))
}

func (r *run) givenPath() string {
	if r.attempt.given == nil {
		return "none"
	}
	return r.attempt.given.Path
}

// loop handles all events while the program runs, and reports whether it was asked to stop.
func (r *run) loop(ctx context.Context) (stopped bool) {
	defer r.logStalls()()
	look := time.NewTicker(r.scanEvery())
	defer look.Stop()
	rate := newTicker(r.summariesEvery())
	defer rate.Stop()
	stop := ctx.Done()
	for ; ; r.turns.Add(1) {
		select {
		case said, ok := <-r.attempt.process.reports:
			if !ok {
				return stopped
			}
			r.onOwnReport(said)
		case <-look.C:
			if !r.takeReports() { // of what was done before that which is found now
				return stopped
			}
			r.beginRefresh()
			r.logEnding()
			r.endOutliving()
			r.reapOrphans()
			r.makeWay()
			r.attempt.marks = r.withdrawMarks(r.attempt.marks)
			r.lookAtNodes()
			if r.isLost() {
				stopped, stop = true, nil
				r.leave()
			}
			if !stopped {
				r.prompt()
			}
			if !stopped && r.hangs() {
				r.terminate()
			}
		case verdicts := <-r.verdicts:
			r.takeReports() // which may be of the steps that were saved
			r.onVerdicts(verdicts)
		case <-rate.C:
			r.writeRate()
		case q := <-r.inbox.requests:
			q.answer <- q.do(r)
		case <-stop:
			stopped, stop = true, nil
			r.takeReports() // which say whether there is anything to save
			r.terminate()
		case <-r.attempt.saveDue:
			r.sendDueSave()
		case <-r.ends():
			r.enter(r.attempt.ending.stage + 1)
		}
	}
}

// takeReports handles the reports that have arrived so far, and returns whether more may come.
func (r *run) takeReports() bool {
	if !r.takeOwnReports() {
		return false
	}
	r.takeForwarded(false)
	return true
}

// takeOwnReports is takeReports for the program on this node.
func (r *run) takeOwnReports() bool {
	for range cap(r.attempt.process.reports) { // it may say more all the time
		select {
		case said, ok := <-r.attempt.process.reports:
			if !ok {
				return false
			}
			r.onOwnReport(said)
		default:
			return true
		}
	}
	return true
}

// checkSignal logs an error of a signal, which is not expected.
func (r *run) checkSignal(err error) {
	if err != nil {
		r.log.Error("cannot signal the program", "err", err)
	}
}

// hangs reports whether the program has stopped making steps.
func (r *run) hangs() bool {
	if r.hangAfter <= 0 || r.attempt.paused || r.attempt.hung || time.Since(r.attempt.lastProgress) < r.hangAfter {
		return false
	}
	r.attempt.hung = true
	r.log.Warn("the program has reported no step for too long; ending it", "limit", r.hangAfter, "step", r.attempt.step)
	return true
}

// onExit counts starts that failed before they reported or saved anything. The checkpoint that they
// began with may be the cause, but not of a SIGKILL, which came from elsewhere, nor of a failure on
// a full disk.
func (r *run) onExit(e Exit) {
	trained := r.hasTrained()
	switch {
	case e.DiskFull || !trained && e.wasKilled():
		return
	case trained:
		r.suspect = nil // a program without reports shows by its saves that it can do without
	case r.suspect != nil && e.Cause != Completed:
		r.putBack()
	}
	if trained || e.Cause != Failed && e.Cause != Hung {
		r.failedWith = nil
		return
	}
	given, before := r.attempt.given, r.failedWith
	if r.failedWith = given; given == nil || before == nil || !given.Is(before) {
		return
	}
	r.failedWith = nil
	r.settleRest() // what is moved, or passed over, must not be looked at meanwhile
	if r.suspect == nil && r.quarantineLatest() {
		return
	}
	if r.suspect == nil && given.MayBeUnfinished(r.root) {
		r.quarantineSuspect(*given)
		return
	}
	older, ok := r.store.Before(given)
	if !ok {
		r.log.Warn("the program has failed twice with its only checkpoint; if it cannot load that, move it out of the logdir", "checkpoint", given.Path)
	} else {
		r.log.Warn("the program has failed twice with this checkpoint; rewinding to the previous one", "checkpoint", given.Path, "older", older.Path)
		r.ceiling = given
		r.counts.update(func(c *counts) { c.stats.Rewinds++ })
	}
}

// newTicker is time.NewTicker, but returns a ticker that never ticks if the interval means off.
func newTicker(d time.Duration) *time.Ticker {
	if d > 0 {
		return time.NewTicker(d)
	}
	t := time.NewTicker(time.Hour)
	t.Stop()
	return t
}
