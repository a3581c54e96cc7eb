package daemon

import (
	"context"
	"log/slog"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// resumePoint is the state of a job according to its logdir.
type resumePoint struct {
	step     int64
	prefix   string // of the checkpoint that a run would continue from, "" for none
	damaged  []*checkpoint.Error
	sess     session.Session // with the model as it is; to be closed
	complete bool
}

// probe finds the point at which the job would resume, as a run does, but changes nothing in the
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

// completed returns the resume point of a job that has nothing left to do, or nil for any other. It
// reads only one number unless the job looks complete. A faulty checkpoint is left for the run to
// find, report and move aside.
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
