package daemon

import (
	"context"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/session"
)

// savedPoll is how often a worker looks for the chief's last checkpoint.
const savedPoll = time.Second

// awaitSaved waits, as a synchronous worker that has made the last step, until
// the chief has saved it: if the servers lose the model before, the steps since
// the checkpoint take all workers. It ends with the error of a session that was
// lost, and the worker makes another one. A worker that sees no checkpoints of
// the chief does not wait, nor does one for longer than its patience.
func (t *training) awaitSaved(ctx context.Context, sess session.Session) error {
	if t.replicas == nil || t.job.config.Supervisor.IsChief || t.job.steps == 0 || t.step < t.job.steps {
		return nil
	}
	defer t.job.task.ReportWait("")
	for began := time.Now(); !t.lastSaved() && !t.outOfPatience(began); {
		t.job.task.ReportWait("the chief to save the last step")
		if _, err := t.job.task.CurrentStep(ctx, sess); err != nil {
			if ctx.Err() != nil || t.lastSaved() {
				return nil
			}
			return err
		}
		if !coord.Sleep(ctx, savedPoll) {
			return nil
		}
	}
	return nil
}

// lastSaved reports whether a checkpoint has the last step, or no checkpoint can be seen. A
// checkpoint named after an earlier step may have it, because others continued to train while the
// step was being read.
func (t *training) lastSaved() bool {
	prefix, err := ckptdir.LatestCheckpoint(t.job.config.Logdir, nil)
	return err != nil || ckptdir.StepOf(prefix) >= t.job.steps || t.job.program.SavedStep(prefix) >= t.job.steps
}

func (t *training) outOfPatience(began time.Time) bool {
	patience := t.job.config.Cluster.PatienceSecs.Duration()
	return patience > 0 && time.Since(began) > patience
}
