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

// RunStep runs a step of a training. Where the workers wait for each other by ops
// of the graph, as with SyncReplicasOptimizer, a stop ends it: the others may
// have been stopped too, and the servers would wait for them without end. What
// the step gave until then stays on the servers, as that of a worker that was
// killed does.
func (t *Task) RunStep(ctx context.Context, sess session.Session, f program.Feed, fetches, targets []string) ([]*ckptfmt.Tensor, error) {
	if !t.tracksWorkers() || t.program.Sync != nil {
		return sess.Run(ctx, f, fetches, targets)
	}
	step, end := trainerd.StepContext(ctx)
	defer end()
	step, cancel := context.WithCancelCause(step)
	defer cancel(nil)
	began, done := time.Now(), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-done:
			return
		}
		select {
		case <-time.After(stepGrace - time.Since(began)):
			cancel(errStopped)
		case <-done:
		}
	})
	out, err := unmanaged(sess).Run(step, f, fetches, targets)
	close(done)
	watching.Wait()
	return out, err
}
