package child

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// run is a call of Run. It belongs to its goroutine.
type run struct {
	*Supervisor
	log      *slog.Logger
	observer Observer
	out      *output
	inbox    inbox
	ectx     context.Context // for events, which a stop does not interrupt

	// The logdir.
	logdir   string // absolute
	lock     *logdir.Lock
	root     *os.Root
	disk     atomicfile.FS // what changes the logdir
	events   *events
	lost     error     // it is not this run's any more
	relocked int       // how often the lock file was made again
	remade   time.Time // when it last was, perhaps with the folder of the nodes, which then publish their states again

	// The nodes.
	nodes    *nodes    // nil for one node
	groupDir string    // whose lock the processes of this node hold: the logdir, or a folder in it
	follows  bool      // another node is the chief
	job      jobState  // of the current start, on all nodes
	earlier  *jobState // the start of an earlier chief whose reports are not all taken yet, nil for none

	// The starts of the program.
	attempt    attempt // the current one
	attempts   int
	budget     budget
	paused     bool // until Resume; no start begins meanwhile
	hangAfter  time.Duration
	failedWith *Checkpoint // with which the newest start began, if that has failed before it reported or saved anything

	// What it reports.
	firstStep int64 // of the first report of a start without a checkpoint
	maxStep   int64 // the highest step of all reports, -1 for none
	measured  measured
	counts    *counts

	// Its checkpoints.
	store     *found.Store
	nextScan  time.Time              // for new ones, at the earliest: see scanSpacing
	verdicts  <-chan []found.Verdict // of the refresh under way, nil for none
	intact    []Checkpoint           // with which the next start may begin, and that are not verified yet
	unsettled bool                   // the newest start has ended, or begun, before all that was saved is verified
	ceiling   *Checkpoint            // it, and what is newer, is not trusted; nil for none
	continued time.Time              // when the newest start that has reported something began
	suspect   *suspect
	rewinds   rewinds
	prompter  prompter
	savers    []saver

	// What the log has said already.
	socketless bool   // the program gets no socket
	saidReused bool   // numbers of checkpoints are used again
	outside    string // the link to checkpoints that leads out of the logdir
	foreign    foreignEvents

	turns atomic.Int64 // of the loop while a program runs
}

// open prepares the run for the first start.
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
		out: newOutput(sv.Stdout, sv.Stderr), budget: budget{Restarts: sv.Restarts.withDefaults()}, prompter: sv.prompter(),
		inbox: inbox{requests: make(chan request), closed: make(chan struct{})}, counts: &counts{first: -1}, maxStep: -1, attempt: attempt{step: -1}, hangAfter: sv.HangAfter,
	}
	if r.observer == nil {
		r.observer = nobody{}
	}
	return r
}

// acquire locks the logdir and opens what is in it.
func (r *run) acquire() (err error) {
	if r.logdir, err = filepath.Abs(r.Logdir); err != nil {
		return err
	}
	if err := atomicfile.MkdirAllSync(r.FS, r.logdir); err != nil {
		return fmt.Errorf("logdir %s cannot be made: %w", r.logdir, err)
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

// useRoot makes a folder the logdir.
func (r *run) useRoot(root *os.Root) {
	r.root, r.disk = root, r.FS
	if r.disk == nil {
		r.disk = atomicfile.InRoot(root)
	}
	options := found.Options{FS: r.disk, Retention: r.policies(), Metrics: r.measured.of, Now: r.moment, IsPast: r.isPast}
	if r.MaxRewinds > 0 {
		options.Spared = r.spared
	}
	r.store = found.New(root, r.Checkpoints, options)
}

// abs returns the absolute name of a file below the logdir.
func (r *run) abs(name string) string {
	return filepath.Join(r.root.Name(), filepath.FromSlash(name))
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

// scan reads what an earlier run has left.
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
	r.warnOrder(known)
	if err := r.store.Sweep(); err != nil {
		r.log.Warn("cannot remove what a killed run has left", "err", err)
	}
	if n := len(known); n > 0 {
		r.maxStep = known[n-1].Step
	}
	// Otherwise the next save does it, when it is known which are good, or the best, or what the
	// program continues from.
	if r.MaxRewinds <= 0 && r.nodes == nil && !wasPassedOver(known) {
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
