package child

import (
	"context"
	"errors"
	"time"

	"github.com/trainerd/trainerd/internal/logging"
)

// lead runs the program as the chief, which manages the checkpoints, the events and the other
// nodes.
func (sv *Supervisor) lead(ctx context.Context) (exit Exit, err error) {
	begun := time.Now()
	r, err := sv.open(ctx)
	if err != nil {
		return Exit{}, err
	}
	defer func() {
		r.settleRest()
		r.publishEnd(exit, err)
		err = r.closing(ctx, begun, exit, err)
	}()
	if r.nodes.isPaused() { // in the middle of a job, by a chief that is gone
		r.paused = true
		r.wait(ctx, 0)
	} else {
		r.publish(nodeEnded, "") // for all to know who the chief is: it may wait for an earlier start to end
	}
	for ctx.Err() == nil && r.lost == nil && !r.isLost() {
		exit, err = r.once(ctx)
		if r.lost != nil {
			break
		}
		if err != nil || exit.Cause == Completed || exit.Cause == Stopped {
			return exit, err
		}
		pause, again := r.budget.next(time.Now(), &exit, r.attempt.progressed)
		if pause > 0 || r.paused {
			r.settleRest()
		}
		r.observer.Ended(exit, again, pause)
		if !again {
			e := &ExitError{Command: sv.Command, Exit: exit, Failures: len(r.budget.failures), Window: r.budget.Window}
			return exit, e
		}
		r.log.Warn("the program "+exit.String()+"; it will be started again", "cause", exit.Cause, "attempt", exit.Attempt,
			"after", exit.Took.Round(time.Millisecond), "pause", pause.Round(time.Millisecond), "failures", len(r.budget.failures), "preemptions", r.budget.preempted)
		r.hintCheckpoints()
		ended := time.Now()
		r.wait(ctx, pause)
		r.counts.update(func(c *counts) { c.pauses += time.Since(ended) })
	}
	exit.Cause = Stopped
	return exit, errors.Join(err, r.unsaved(), r.lost)
}

// wait waits between two starts: for the pause, and as long as the job is paused, or the disk
// refuses what the other nodes have to know, because a start without them would fail.
func (r *run) wait(ctx context.Context, pause time.Duration) {
	if r.paused {
		r.holdStart()
	}
	over := time.NewTimer(pause)
	defer over.Stop()
	look := time.NewTicker(r.scanEvery())
	defer look.Stop()
	for passed := false; !passed || r.paused || r.nodes.hasUnsent(); {
		select {
		case <-ctx.Done():
			return
		case <-over.C:
			if passed = true; r.nodes.hasUnsent() {
				defer logging.Waiting(r.log.Warn, "the disk to take what the other nodes have to know")()
			}
		case <-look.C: // nobody must take the logdir meanwhile
			if r.isLost() {
				return
			}
			r.nodes.resend()
		case q := <-r.inbox.requests:
			q.answer <- q.do(r)
		}
	}
}
