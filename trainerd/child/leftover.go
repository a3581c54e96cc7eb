package child

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// leftoverGrace bounds how long processes that were left may take to end after
// SIGTERM, or after the program has succeeded, when they may be writing its last
// checkpoint, and how long the system may take to end them after SIGKILL.
const leftoverGrace = 10 * time.Second

// endLeftovers ends what an earlier start has left, so that the next one is the
// only writer of the logdir. Patience is the time from SIGTERM to SIGKILL.
func (r *run) endLeftovers(ctx context.Context, patience time.Duration) error {
	left := r.system().Leftovers(r.groupDir)
	if len(left) == 0 {
		return nil
	}
	r.log.Warn("ending processes left by an earlier start of the program", "pids", left)
	if patience > 0 {
		r.system().SignalAll(r.groupDir, left, system.SigTerm)
		left = r.awaitEnd(ctx, patience)
	}
	return r.killLeftovers(ctx, left)
}

func (r *run) killLeftovers(ctx context.Context, left []int) error {
	r.system().SignalAll(r.groupDir, left, system.SigKill)
	if left = r.awaitEnd(context.WithoutCancel(ctx), leftoverGrace); len(left) > 0 {
		return &logdir.GroupError{Logdir: r.logdir, PIDs: left}
	}
	return nil
}

// endRest ends what a start has left that has just ended: nobody else would, and there is
// nothing that it could add.
func (r *run) endRest(ctx context.Context, a *process) {
	if len(a.deaf) > 0 {
		r.log.Warn("killed processes that the program has left, and that SIGTERM has not ended", "pids", a.deaf)
	}
	left := r.system().Leftovers(r.groupDir)
	if len(left) == 0 {
		return
	}
	if len(a.deaf) == 0 {
		r.log.Warn("killing processes that the program has left", "pids", left)
	}
	r.checkSignal(r.killLeftovers(ctx, left))
}

// endAbandoned ends what a program has left that has failed on its own, in sessions of
// their own: the ranks of a launcher that was killed would train on until their output is
// drained, and the next start waits for that.
func (r *run) endAbandoned() {
	if r.attempt.abandoned || !r.attempt.process.hasFailed() {
		return
	}
	r.attempt.abandoned = true
	if left := r.system().Leftovers(r.groupDir); len(left) > 0 {
		r.log.Warn("ending processes that the program has left", "pids", left)
		r.system().SignalAll(r.groupDir, left, system.SigKill)
	}
}

// leftRunning returns the processes that a program which has succeeded has left running.
func (r *run) leftRunning(ctx context.Context) []int {
	left := r.awaitEnd(ctx, r.patienceWithLeftovers())
	if len(left) > 0 {
		r.log.Warn("the program has ended, and processes that it has started are still running; nobody restarts these. "+
			"If they train, have the program stay in the foreground", "pids", left)
	}
	return left
}

// holdGroup locks the logdir for the next start of the program, whose processes
// inherit the lock: also those that begin a session of their own and change their
// environment. Where processes of an earlier start have it, they are ended.
func (r *run) holdGroup(ctx context.Context) (*os.File, error) {
	lock, err := logdir.HoldGroup(r.groupDir)
	if _, held := errors.AsType[*logdir.GroupError](err); !held {
		return lock, err
	}
	if err := r.endLeftovers(ctx, r.patienceWithLeftovers()); err != nil {
		return nil, err
	}
	return awaitGroup(ctx, r.groupDir, leftoverGrace)
}

// awaitGroup locks the logdir once nobody else has it. A process that is ending has
// lost its environment, by which it could be found, and has its files open still: as
// long as the system takes to free its memory.
func awaitGroup(ctx context.Context, dir string, limit time.Duration) (lock *os.File, err error) {
	pollGroup(ctx, limit, func() bool {
		lock, err = logdir.HoldGroup(dir)
		_, held := errors.AsType[*logdir.GroupError](err)
		return !held
	})
	return lock, err
}

// awaitEnd returns which processes are left when all have ended, the time is
// over, or ctx is done.
func (r *run) awaitEnd(ctx context.Context, limit time.Duration) (left []int) {
	pollGroup(ctx, limit, func() bool {
		left = r.system().Leftovers(r.groupDir)
		return len(left) == 0
	})
	return left
}

// pollGroup looks at once, and again until a look finds that the processes have ended, the
// time is over, or ctx is done.
func pollGroup(ctx context.Context, limit time.Duration, ended func() bool) {
	over := time.NewTimer(limit)
	defer over.Stop()
	poll := time.NewTicker(system.GroupPoll)
	defer poll.Stop()
	for !ended() {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			return
		case <-poll.C:
		}
	}
}

// patienceWithLeftovers is how long leftovers of a killed trainerd may take to save.
func (sv *Supervisor) patienceWithLeftovers() time.Duration {
	return min(sv.grace(), leftoverGrace)
}
