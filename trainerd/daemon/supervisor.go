package daemon

import (
	"log/slog"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// maxRestarts is how often in a row a session is replaced that servers have
// lost, without a checkpoint in between.
const maxRestarts = 10

// supervisor returns the Supervisor that the config describes.
func (j *job) supervisor() *trainerd.Supervisor {
	s := j.config.Supervisor
	sv := &trainerd.Supervisor{
		NewSession:         j.sessions.open,
		MetaGraph:          j.program.Meta,
		InitOp:             trainerd.Nodes(j.program.Init...),
		InitFunc:           j.initFunc(),
		LocalInitOp:        trainerd.Nodes(j.task.LocalInit()...),
		ReadyOp:            trainerd.Nodes(j.program.Ready...),
		Logdir:             j.config.Logdir,
		NonChief:           !s.IsChief,
		SummaryOp:          trainerd.None(), // a step gives its summaries; by itself the op would take input of its own
		Saver:              j.saver(j.log),
		CheckpointBasename: s.CheckpointBasename,
		SaveModelEvery:     s.SaveModelSecs.OrOff(),
		SaveModelSteps:     s.SaveModelSteps,
		SaveBudget:         trainerd.SaveBudget{MaxShare: s.MaxSaveShare, MaxRisk: s.MaxRiskSecs.Duration()},
		SaveSummariesEvery: s.SaveSummariesSecs.OrOff(),
		RecoveryWait:       s.RecoveryWaitSecs.OrOff(),
		StopGrace:          s.StopGraceSecs.OrOff(),
		Logger:             j.log,
	}
	sv.OnWait = func(reason error) { j.task.ReportWait("the chief: " + reason.Error()) }
	if j.config.IsRemote() {
		j.superviseRemote(sv)
	}
	return sv
}

// superviseRemote adds what a model on servers needs.
func (j *job) superviseRemote(sv *trainerd.Supervisor) {
	sv.Logdir = config.Absolute(sv.Logdir) // the servers run in directories of their own
	sv.MaxRestarts = maxRestarts
	sv.MaxWait = j.config.Cluster.PatienceSecs.OrOff()
	if j.config.Supervisor.IsChief {
		sv.Adopt, sv.BeforeRestore = j.task.Adopt, j.task.UntagModel
	}
}

func (j *job) saver(log *slog.Logger) *checkpoint.Saver {
	s := j.config.Supervisor
	keep := s.MaxToKeep
	if keep == 0 {
		keep = -1 // all, as in TensorFlow
	}
	saver := &checkpoint.Saver{
		MaxToKeep: keep,
		KeepEvery: time.Duration(s.KeepCheckpointEveryNHours * float64(time.Hour)),
		Shards:    s.Shards,
		MetaGraph: j.program.Meta,
		FS:        j.fsys,
		Logger:    log,
	}
	if len(s.KeepSteps) > 0 && s.MaxToKeep > 0 {
		saver.Retention = append(keepPolicies(j.config), retention.Steps(s.KeepSteps))
	}
	if s.WritesV1() {
		saver.Format = checkpoint.FormatV1
	}
	return saver
}

// keepPolicies returns max_to_keep and keep_checkpoint_every_n_hours as policies,
// none where all checkpoints stay.
func keepPolicies(c *config.Config) []retention.Policy {
	s := c.Supervisor
	if s.MaxToKeep == 0 {
		return nil
	}
	policies := []retention.Policy{retention.Last(s.MaxToKeep)}
	if c.KeepsPeriods() {
		policies = append(policies, retention.Every(s.KeepCheckpointEveryNHours*float64(time.Hour)))
	}
	return policies
}
