package child

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// leftoverGrace bounds how long leftover processes may take to end after SIGTERM, or after the
// program has succeeded, when they may be writing its last checkpoint, and how long the system may
// take to end them after SIGKILL.
const leftoverGrace = 10 * time.Second

// endLeftovers ends the processes that an earlier start has left, so that the next start is the
// only writer of the logdir. patience is the time from SIGTERM to SIGKILL.
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

// endRest ends the processes that a start which has just ended has left: nobody else would, and
// they can contribute nothing more.
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

// endAbandoned ends the processes in their own sessions that a failed program has left: the ranks
// of a killed launcher would continue to train until their output is drained, for which the next
// start waits.
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

// holdGroup locks the logdir for the next start of the program, whose processes inherit the lock,
// even those that begin their own session and change their environment. Processes of an earlier
// start that hold it are ended.
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

// awaitGroup locks the logdir once nobody else holds the lock. A process that is ending has already
// lost its environment, by which it could be found, but keeps its files open while the system frees
// its memory.
func awaitGroup(ctx context.Context, dir string, limit time.Duration) (lock *os.File, err error) {
	pollGroup(ctx, limit, func() bool {
		lock, err = logdir.HoldGroup(dir)
		_, held := errors.AsType[*logdir.GroupError](err)
		return !held
	})
	return lock, err
}

// awaitEnd waits until all processes have ended, the time is over, or ctx is done, and returns
// those that are left.
func (r *run) awaitEnd(ctx context.Context, limit time.Duration) (left []int) {
	pollGroup(ctx, limit, func() bool {
		left = r.system().Leftovers(r.groupDir)
		return len(left) == 0
	})
	return left
}

// pollGroup checks at once, and again until the processes have ended, the time is over, or ctx is
// done.
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
