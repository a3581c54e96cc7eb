package child

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/child/system"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// DefaultGrace is how long a program may take to end after SIGTERM.
const DefaultGrace = 2 * time.Minute

// Supervisor keeps a program alive. Its fields must not change during Run; the
// zero value of each is its default.
type Supervisor struct {
	// Command is the program and its arguments.
	Command []string
	// Dir is the working directory of the program, to which the name of a
	// program with a slash is relative. Default: that of this process.
	Dir string
	// Env is added to the environment, as "KEY=VALUE".
	Env []string

	// Logdir is created if it is missing.
	Logdir string
	// Checkpoints is a pattern of names below the logdir, with slashes, as in
	// "ckpt-*.pt". Without one, no checkpoints are managed. It may have
	// alternatives, as in "{weights,optim}_*.npz": a checkpoint has files of each.
	Checkpoints string
	// Retention says which checkpoints are kept; without any, all are.
	Retention []retention.Policy
	// Nodes is the number of nodes on which the program runs, each with a Supervisor with
	// the same Logdir, and Node the number of this one, from 0. The one that has the
	// lock on the logdir is the chief, the others are workers. Default: one node.
	Nodes, Node int
	// Steps is how far to train, as the program is told; 0 for no such number.
	Steps int64
	// Patterns read lines in the program's own format, on both its outputs. They
	// have named groups: "step", and the names of curves, with "__" for "/".
	Patterns []*regexp.Regexp
	// Lines, if not nil, returns a reader of lines that are not reports, for a
	// start from a checkpoint of that step, 0 for none. It is not used if there are
	// Patterns, nor once the program has made a report.
	Lines func(step int64) LineReader
	// ResumeArgs are added to Command if there is a checkpoint to continue from,
	// with {checkpoint} and {step} replaced by its path and step.
	ResumeArgs []string

	Restarts Restarts
	// Grace is the time from SIGTERM to SIGKILL. Negative: SIGKILL at once.
	Grace time.Duration
	// HangAfter is the time without a new step after which the program is
	// stopped and restarted; 0 for never.
	HangAfter time.Duration
	// MaxRewinds is how often in a row a program whose loss is NaN or infinite is
	// killed and started again from an earlier checkpoint; the later ones go to
	// damaged/. Each time in a row it goes back further. 0: the loss is not watched.
	MaxRewinds int
	// Loss is the name of the curve. Default: that of [Report.Loss].
	Loss string
	// SaveSignal makes the program write a checkpoint; 0 for none. Save sends it
	// at any time, SaveEvery from the first report of a start on.
	SaveSignal syscall.Signal
	// SaveEvery is the time after which the program is asked to save, and with SaveSteps it is asked
	// at each multiple of that many steps; 0 for never. Saves that it makes on its own count, too.
	// SaveBudget limits both; its MaxRisk applies even without them. After a timed request, the
	// program is not asked again before it has had as much time for its steps as for the last save,
	// nor before it has made a step since. All of it needs SaveSignal and Checkpoints.
	SaveEvery  time.Duration
	SaveSteps  int64
	SaveBudget trainerd.SaveBudget

	// SummariesEvery is the time between two points of global_step/sec. Default:
	// trainerd.DefaultSaveSummariesEvery; negative for none.
	SummariesEvery time.Duration
	// ScanEvery is the time between two scans for checkpoints. Default: 1 s.
	ScanEvery time.Duration

	// Config is the text of [ConfigName] in the logdir: the config of the run, for later
	// readers. nil for no such file.
	Config []byte

	// HParams are the hyperparameters of the run for TensorBoard's HPARAMS tab; nil
	// for none.
	HParams map[string]any

	Stdout, Stderr io.Writer    // for the program's output; nil discards it
	Log            *slog.Logger // nil for none
	// Observer, if not nil, is called with its progress.
	Observer Observer
	// FS is where Run writes checkpoints' records and events; nil for the
	// operating system's.
	FS atomicfile.FS
	// System is what the program runs on; nil for the operating system.
	System system.System

	mu      sync.Mutex
	current *inbox  // of a run, nil without one
	counts  *counts // of the run, or of the last one; nil before the first
}

// Checkpoint is what the program has written at one step.
type Checkpoint = found.Checkpoint

// Observer follows a run. It is called in the goroutine of Run, which waits for it.
type Observer interface {
	// Started is called before a start, and when the program has begun again within one; c is nil
	// without a checkpoint.
	Started(attempt int, c *Checkpoint)
	Reported(r *Report)
	Saved(c Checkpoint)
	// Paused is called when a pause begins, and when it ends.
	Paused(on bool)
	// Waits is called with what is waited for between two starts, and with "" once it has come.
	Waits(what string)
	// Ended is called after a start. If another one follows, it does so after
	// pause.
	Ended(e Exit, again bool, pause time.Duration)
}

// Run starts the program, repeatedly if necessary, until it has completed its job,
// has failed permanently, or ctx is done. It returns how the last start ended; the
// error is an [*ExitError] or [*StartError] if the program is to blame, a
// [*trainerd.NaNError] if its loss is NaN and MaxRewinds did not help, a
// [*SaveLostError] if it was stopped and has not saved, a [*logdir.LockedError] if
// another process holds the logdir, a [*logdir.GroupError] if processes of an earlier
// start do not end, a [*logdir.LostError] if the logdir was moved or deleted meanwhile,
// and a [*ChiefError] on a worker if the job has failed on the chief's node.
func (sv *Supervisor) Run(ctx context.Context) (Exit, error) {
	for {
		exit, err := sv.lead(ctx)
		locked, isLocked := errors.AsType[*logdir.LockedError](err)
		if !isLocked || sv.Nodes <= 1 || exit.Attempt > 0 {
			return exit, err
		}
		exit, promoted, err := sv.follow(ctx, locked.Holder)
		if !promoted || err != nil {
			return exit, err
		}
	}
}

// prompter returns the prompter of a run, which never asks if the program has no signal for saves.
func (sv *Supervisor) prompter() prompter {
	if sv.SaveSignal == 0 || sv.Checkpoints == "" {
		return prompter{}
	}
	return prompter{every: max(sv.SaveEvery, 0), steps: max(sv.SaveSteps, 0), budget: sv.SaveBudget, lead: sv.saveLead()}
}

// system returns what the program runs on.
func (sv *Supervisor) system() system.System {
	if sv.System == nil {
		return system.OS{}
	}
	return sv.System
}

// grace is the time from SIGTERM to SIGKILL.
func (sv *Supervisor) grace() time.Duration { return max(cmp.Or(sv.Grace, DefaultGrace), 0) }

func (sv *Supervisor) scanEvery() time.Duration {
	return cmp.Or(max(sv.ScanEvery, 0), time.Second)
}

func (sv *Supervisor) summariesEvery() time.Duration {
	return cmp.Or(sv.SummariesEvery, trainerd.DefaultSaveSummariesEvery)
}

type nobody struct{}

func (nobody) Started(int, *Checkpoint)        {}
func (nobody) Reported(*Report)                {}
func (nobody) Saved(Checkpoint)                {}
func (nobody) Paused(bool)                     {}
func (nobody) Waits(string)                    {}
func (nobody) Ended(Exit, bool, time.Duration) {}
