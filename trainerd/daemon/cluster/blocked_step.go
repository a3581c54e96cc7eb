package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// RunStep runs a step of a training. A stop ends a step that waits on servers for others: to put
// something into a queue, to take something out of it, or to contribute their gradients. They may
// have been stopped too, and the servers would wait for them forever. What the step has contributed
// by then stays on the servers, like that of a killed worker. A step that computes is finished.
func (t *Task) RunStep(ctx context.Context, sess session.Session, f program.Feed, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if t.program.Sync != nil || !t.tracksWorkers() && len(t.marked) == 0 {
		return sess.Run(ctx, f, fetches, targets)
	}
	return t.runUntilStop(ctx, sess, func(ctx context.Context, sess session.Session) ([]*ckptfmt.Tensor, error) {
		return sess.Run(ctx, f, fetches, append(targets[:len(targets):len(targets)], t.targets()...))
	})
}

// RunInput runs ops that take input and train nothing. A stop ends them at once.
func (t *Task) RunInput(ctx context.Context, sess session.Session, f program.Feed, targets []string) error {
	_, err := unmanaged(sess).Run(ctx, f, nil, targets)
	return err
}

// runUntilStop runs a step with a session that no Supervisor manages, and a
// context that ends when the step waits after a stop was requested.
func (t *Task) runUntilStop(ctx context.Context, sess session.Session,
	run func(context.Context, session.Session) ([]*ckptfmt.Tensor, error)) ([]*ckptfmt.Tensor, error) {
	step, end := trainerd.StepContext(ctx)
	defer end()
	step, cancel := context.WithCancelCause(step)
	defer cancel(nil)
	raw, began, done := unmanaged(sess), time.Now(), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		if t.awaitBlocked(step, raw, began, done) {
			cancel(errStopped)
		}
	})
	out, err := run(step, raw)
	close(done)
	watching.Wait()
	return out, err
}

// awaitBlocked waits until a step is not worth waiting for after a stop, which is
// once it waits for others, in the same place, at two looks in a row. It returns false when the step
// is done.
func (t *Task) awaitBlocked(ctx context.Context, sess session.Session, began time.Time, done <-chan struct{}) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pause, last := stepGrace-time.Since(began), waits{}
	for {
		select {
		case <-time.After(pause):
		case <-done:
			return false
		}
		if t.tracksWorkers() {
			return true
		}
		now := t.look(ctx, sess, done)
		if now.op != "" && now == last {
			t.log.Info("the stop ends a step that waits on the servers", "op", now.op, "waited", time.Since(began).Round(time.Second))
			return true
		}
		pause, last = pollEvery, now
	}
}

// look watches the ops of a step that may wait; it ends with the step.
func (t *Task) look(ctx context.Context, sess session.Session, done <-chan struct{}) waits {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return t.lookAtMarks(ctx, sess)
}
