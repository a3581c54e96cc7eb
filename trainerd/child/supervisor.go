package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
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
	// Steps is how far to train, for the program to know; 0 for no such number.
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
	// SaveEvery is the time after which the program is asked to save, and with
	// SaveSteps it is asked at each multiple of that many steps; 0 for never.
	// Saves that it makes on its own count, too. SaveBudget limits both; its
	// MaxRisk applies even without them. By the clock, it is not asked again before
	// it has had as long for its steps as for the last save, nor while it has made
	// no step since it was asked. All of it needs SaveSignal and Checkpoints.
	SaveEvery  time.Duration
	SaveSteps  int64
	SaveBudget trainerd.SaveBudget

	// SummariesEvery is the time between two points of global_step/sec. Default:
	// trainerd.DefaultSaveSummariesEvery; negative for none.
	SummariesEvery time.Duration
	// LookEvery is the time between two scans for checkpoints. Default: 1 s.
	LookEvery time.Duration

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
	// Started is called before a start; c is nil without a checkpoint.
	Started(attempt int, c *Checkpoint)
	Reported(r *Report)
	Saved(c Checkpoint)
	// Paused is called when a pause begins, and when it ends.
	Paused(on bool)
	// Ended is called after a start. If another one follows, it does so after
	// pause.
	Ended(e Exit, again bool, pause time.Duration)
}

// Run starts the program, repeatedly if necessary, until it has completed its job,
// has failed permanently, or ctx is done. It returns how the last start ended; the
// error is an [*ExitError] or [*StartError] if the program is to blame, a
// [*trainerd.NaNError] if its loss is NaN and MaxRewinds did not help, a
// [*SaveLostError] if it was stopped and has not saved, a [*logdir.LockedError] if
// another process holds the logdir, and a [*logdir.LostError] if the logdir was
// moved or deleted meanwhile.
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

// lead runs the program as the chief, which looks after the checkpoints, the
// events and the other nodes.
func (sv *Supervisor) lead(ctx context.Context) (exit Exit, err error) {
	begun := time.Now()
	r, err := sv.open(ctx)
	if err != nil {
		return Exit{}, err
	}
	defer func() {
		r.publishEnd(exit, err)
		err = r.closing(ctx, begun, exit, err)
	}()
	if r.nodes.isPaused() { // in the middle of a job, by a chief that is gone
		r.paused = true
		r.wait(ctx, 0)
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

// run is a call of Run. It belongs to its goroutine.
type run struct {
	*Supervisor
	log      *slog.Logger
	observer Observer
	logdir   string    // absolute
	groupDir string    // whose lock the processes of this node hold: the logdir, or a folder in it
	nodes    *nodes    // nil for one node
	follows  bool      // another node is the chief
	job      jobState  // of the current start, on all nodes
	earlier  *jobState // the start of an earlier chief whose reports are not all taken yet, nil for none
	lock     *logdir.Lock
	root     *os.Root
	disk     atomicfile.FS // what changes the logdir
	store    *found.Store
	events   *events
	ectx     context.Context // for events, which a stop does not interrupt
	out      *output
	budget   budget
	inbox    inbox

	attempts               int
	firstStep              int64 // of the first report of a start without a checkpoint
	maxStep                int64 // the highest step of all reports, -1 for none
	ceiling                int64 // checkpoints from this step on are not trusted
	aside                  *aside
	outside                string // a link that leads out of the logdir, and is in the log
	failuresBeforeProgress int    // starts in a row that failed before their first report
	savers                 []chan<- Checkpoint
	prompter               prompter
	measured               measured
	counts                 *counts
	hangAfter              time.Duration
	rewinds                rewinds
	verdicts               <-chan []found.Verdict // of the refresh under way, nil for none
	lost                   error                  // the logdir is not this run's any more
	relocked               int                    // how often the lock file was made again
	remade                 time.Time              // when it last was, perhaps with the folder of the nodes, who tell their states again
	paused                 bool                   // until Resume; no start begins meanwhile
	mixed                  bool                   // the log has that its events cannot be separated from the program's
	saidBeyond             []string               // links out of the logdir that the log has
	counting               map[string]bool        // folders whose events count other steps than the reports
	attempt                attempt

	turns atomic.Int64 // of the loop while a program runs
}

// open makes the run ready for the first start.
func (sv *Supervisor) open(ctx context.Context) (*run, error) {
	if len(sv.Command) == 0 || sv.Command[0] == "" {
		return nil, errors.New("child: there is no command to run")
	}
	if why := found.CheckPattern(sv.Checkpoints); why != "" && sv.Checkpoints != "" {
		return nil, errors.New("child: checkpoints: " + why)
	}
	r := sv.newRun(ctx)
	if err := logging.Await(r.log.Warn, "the logdir", r.acquire); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if err := r.endLeftovers(ctx, sv.patienceWithLeftovers()); err != nil {
		return nil, errors.Join(err, r.close())
	}
	r.keepConfig()
	sv.setInbox(new(inbox)) // to be answered at once: the scan may have much to read
	if err := logging.Await(r.log.Warn, "the checkpoints in the logdir", func() error { return r.scan(ctx) }); err != nil {
		return nil, errors.Join(err, r.close())
	}
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.counts = r.counts
	return r, nil
}

func (sv *Supervisor) newRun(ctx context.Context) *run {
	r := &run{
		Supervisor: sv, log: logging.OrDiscard(sv.Log), observer: sv.Observer, ectx: context.WithoutCancel(ctx),
		out: &output{stdout: sv.Stdout, stderr: sv.Stderr}, budget: budget{Restarts: sv.Restarts.withDefaults()}, prompter: sv.prompter(),
		inbox: inbox{make(chan request), make(chan struct{})}, counts: &counts{first: -1}, maxStep: -1, ceiling: noCeiling, attempt: attempt{step: -1}, hangAfter: sv.HangAfter,
	}
	if r.observer == nil {
		r.observer = nobody{}
	}
	return r
}

// prompter returns what has the program save: nothing, where it cannot be asked.
func (sv *Supervisor) prompter() prompter {
	if sv.SaveSignal == 0 || sv.Checkpoints == "" {
		return prompter{}
	}
	return prompter{every: max(sv.SaveEvery, 0), steps: max(sv.SaveSteps, 0), budget: sv.SaveBudget, lead: sv.saveLead()}
}

// acquire locks the logdir and opens what is in it.
func (r *run) acquire() (err error) {
	if r.logdir, err = filepath.Abs(r.Logdir); err != nil {
		return err
	}
	if err := atomicfile.MkdirAllSync(r.FS, r.logdir); err != nil {
		return err
	}
	if r.lock, err = logdir.Acquire(r.logdir, r.log); err != nil {
		return err
	}
	if err := logdir.Try(r.lock.Held, r.openLogdir); err != nil {
		return err
	}
	r.relocked = r.lock.Relocked() // nothing was there that is gone
	return nil
}

// openLogdir opens what is in the logdir.
func (r *run) openLogdir() (err error) {
	if err := r.joinNodes(); err != nil {
		return err
	}
	if r.root != nil {
		r.root.Close() // of a logdir that was deleted meanwhile
	}
	root, err := os.OpenRoot(r.logdir)
	if err != nil {
		return err
	}
	r.useRoot(root)
	r.events, err = r.openEvents()
	return err
}

// joinNodes makes this process a node of the job.
func (r *run) joinNodes() (err error) {
	r.groupDir = r.logdir
	if r.nodes, err = newNodes(r.Supervisor, r.logdir); r.nodes == nil || err != nil {
		return err
	}
	r.groupDir = r.nodes.groupDir()
	if r.earlier == nil {
		r.earlier = r.nodes.unfinished()
	}
	if err := r.nodes.sweep(!r.follows); err != nil {
		r.log.Warn("cannot remove what a killed run has left", "err", err)
	}
	return nil
}

// scan looks at what an earlier run has left.
func (r *run) scan(ctx context.Context) error {
	for _, err := range r.store.ReadRecords() {
		if errors.Is(err, ckptfmt.ErrVersion) { // what it says would be lost
			return fmt.Errorf("%w; a newer trainerd has trained here: continue with that", err)
		}
		r.log.Warn("skipping manifest", "err", err)
	}
	known, bad := r.store.Refresh(true)
	r.skip(bad)
	r.setInbox(&r.inbox)    // which is heard while the program waits for a disk
	if r.lock.TakenOver() { // or the user has removed it, to begin from the beginning
		r.bringBackGone(ctx)
	}
	r.warnElsewhere()
	if err := r.store.Sweep(); err != nil {
		r.log.Warn("cannot remove what a killed run has left", "err", err)
	}
	if n := len(known); n > 0 {
		r.maxStep = known[n-1].Step
	}
	if r.MaxRewinds <= 0 && r.nodes == nil { // else the next save has that done, when it is known which are good, or the best
		r.rotate()
	}
	return nil
}

// close ends what open has begun.
func (r *run) close() error {
	r.setInbox(nil)
	close(r.inbox.closed)
	var errs []error
	if r.events != nil {
		r.events.session(r.ectx, tfpb.SessionLog_STOP, "", max(r.maxStep, 0))
		r.events.check(r.events.Close()) // the run has its checkpoints
	}
	if r.root != nil {
		errs = append(errs, r.root.Close())
	}
	if r.lock != nil {
		errs = append(errs, r.lock.Release())
	}
	return errors.Join(errs...)
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

func (sv *Supervisor) lookEvery() time.Duration {
	return cmp.Or(max(sv.LookEvery, 0), time.Second)
}

func (sv *Supervisor) summariesEvery() time.Duration {
	return cmp.Or(sv.SummariesEvery, trainerd.DefaultSaveSummariesEvery)
}

// wait waits between two starts: for some time, and as long as the job is paused, or the disk
// does not take what the other nodes have to know: a start without them would fail.
func (r *run) wait(ctx context.Context, pause time.Duration) {
	if r.paused {
		r.holdStart()
	}
	over := time.NewTimer(pause)
	defer over.Stop()
	look := time.NewTicker(r.lookEvery())
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

type nobody struct{}

func (nobody) Started(int, *Checkpoint)        {}
func (nobody) Reported(*Report)                {}
func (nobody) Saved(Checkpoint)                {}
func (nobody) Paused(bool)                     {}
func (nobody) Ended(Exit, bool, time.Duration) {}
