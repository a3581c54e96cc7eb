package daemon

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/mapping"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/graphrun"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/model"
	"github.com/trainerd/trainerd/trainerd/predict"
	"github.com/trainerd/trainerd/trainerd/savedmodel"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Exit codes of the command trainerd. They are part of its interface: scripts
// and service managers decide by them whether to start a job again. From 64 on
// they follow BSD's sysexits.h. [Exits] has their meanings.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotRunning  = 3
	ExitData        = 65
	ExitIO          = 74
	ExitInUse       = 75
	ExitConfig      = 78
	ExitInterrupted = 130
)

// Exit is an exit code with its meaning.
type Exit struct {
	Code    int
	Meaning string
}

// Exits returns all exit codes. The help and the guide have them from here.
func Exits() []Exit {
	return []Exit{
		{ExitOK, "the job is complete, or was stopped and has saved"},
		{ExitFailed, "any other error"},
		{ExitUsage, "invalid command line"},
		{ExitNotRunning, "nothing runs in the logdir (status), or a training does not resume exactly (prove)"},
		{ExitData, "the training data are missing or invalid"},
		{ExitIO, "a checkpoint or graph is damaged, or a file cannot be written or read"},
		{ExitInUse, "logdir is locked by another process"},
		{ExitConfig, "the config is invalid, the graph has ops that the runtime lacks, or the checkpoints in the logdir are of a different model, of other data or of a newer trainerd"},
		{ExitInterrupted, "a second signal ended the process at once"},
	}
}

// ExitCode returns the exit code for an error of this package.
func ExitCode(err error) int {
	if code, ok := childExitCode(err); ok {
		return code
	}
	switch {
	case err == nil:
		return ExitOK
	case is[*config.Error](err), is[*model.ConfigError](err), is[*checkpoint.MismatchError](err), is[*checkpoint.WarmStartError](err),
		is[*DataChangedError](err), is[*SettingChangedError](err), is[*chosenError](err), is[*versionError](err), errors.Is(err, ckptfmt.ErrVersion), errors.Is(err, session.ErrUnimplemented), is[*mapping.LeftError](err), is[*mapping.RuleError](err):
		return ExitConfig
	case is[*dataset.Error](err), is[*graphrun.FeedError](err):
		return ExitData
	case is[*control.NotRunningError](err):
		return ExitNotRunning
	case is[*graphrun.ArgumentError](err):
		return ExitUsage
	case is[*logdir.LockedError](err), is[*logdir.GroupError](err):
		return ExitInUse
	case is[*checkpoint.Error](err), is[*logdir.LostError](err), is[*checkpoint.NoIntactError](err), is[*trainerd.SaveFailedError](err), is[*logdir.SelfTestError](err),
		is[*recordError](err), is[*program.FileError](err), is[*predict.Error](err), is[*savedmodel.Error](err), is[*ckptfmt.CorruptError](err), is[*fs.PathError](err), is[syscall.Errno](err), errors.Is(err, io.ErrShortWrite):
		return ExitIO
	}
	return ExitFailed
}

// is reports whether an error of type E is in err's tree.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// childExitCode returns the exit code for the errors of package child.
func childExitCode(err error) (code int, ok bool) {
	var exit *child.ExitError
	switch {
	case is[*child.StartError](err):
		return ExitConfig, true
	case is[*child.SaveLostError](err):
		return ExitIO, true
	case !errors.As(err, &exit):
		return 0, false
	case exit.Exit.Cause != child.Final:
		return ExitFailed, true
	case exit.Exit.Code == ExitData:
		return ExitData, true
	}
	return ExitConfig, true // no start would be better with this one
}
