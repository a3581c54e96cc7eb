package daemon

import (
	"context"
	"log/slog"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// resumePoint is where a job is according to its logdir.
type resumePoint struct {
	step     int64
	prefix   string // of the checkpoint that a run would continue from, "" for none
	damaged  []*checkpoint.Error
	sess     session.Session // with the model as it is; to be closed
	complete bool
}

// probe finds out where the job is, as a run would, but changes nothing in the
// logdir, nor on a server: the model is put into this process.
func (j *job) probe(ctx context.Context) (*resumePoint, error) {
	manager := &trainerd.SessionManager{
		NewSession:         func(context.Context) (session.Session, error) { return j.sessions.embedded() },
		InitOp:             trainerd.Nodes(j.program.Init...),
		LocalInitOp:        trainerd.Nodes(j.program.LocalInit...),
		ReadyOp:            trainerd.Nodes(j.program.Ready...),
		Saver:              j.saver(slog.New(slog.DiscardHandler)),
		CheckpointDir:      j.config.Logdir,
		CheckpointBasename: j.config.Supervisor.CheckpointBasename,
	}
	sess, prepared, err := manager.PrepareSession(ctx)
	if err != nil {
		return nil, err
	}
	step, err := j.program.ReadStep(ctx, sess)
	if err != nil {
		sess.Close()
		return nil, err
	}
	return &resumePoint{step: step, prefix: prepared.Restored, damaged: prepared.Damaged, sess: sess, complete: j.steps > 0 && step >= j.steps || j.endedEarly(step)}, nil
}

// completed returns where a job is that has nothing left to do, nil for any other.
// It reads no more than one number unless the job looks complete. What is wrong with
// a checkpoint is left for the run to find, to report, and to move aside.
func (j *job) completed(ctx context.Context) *resumePoint {
	if j.steps == 0 {
		return nil // only the input knows
	}
	found, err := checkpoint.Find(j.config.Logdir, checkpoint.DefaultLatestFilename, j.config.Supervisor.CheckpointBasename)
	if err != nil || len(found.Prefixes) == 0 {
		return nil
	}
	saved := j.program.SavedStep(found.Prefixes[0])
	j.saved = max(saved, 0)
	if saved < j.steps && !j.endedEarly(saved) {
		return nil
	}
	s, err := j.probe(ctx)
	if err != nil {
		return nil
	}
	if !s.complete || len(s.damaged) > 0 { // a run moves those aside
		s.sess.Close()
		return nil
	}
	return s
}
