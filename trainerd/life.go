package trainerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/eventlog"
	"github.com/trainerd/trainerd/trainerd/logdir"
	"github.com/trainerd/trainerd/trainerd/session"
)

// run is one life of a session under a Supervisor.
type run struct {
	plan        *plan
	lock        *logdir.Lock // the Supervisor's; nil for a worker and without a logdir
	home        *logdirWatch
	sess        session.Session // as NewSession made it
	managed     session.Session // as train sees it
	hooked      session.Session // as hooks see it: they take no part in their own calls
	steps       *stepTracker    // of managed
	prepared    *Prepared
	startStep   int64                // of SessionLog START; earlier points belong to earlier runs
	writer      *tfevents.FileWriter // nil for none
	events      *eventlog.Log        // over writer; nil for none
	checkpoints *checkpointer        // nil when no checkpoints are written
	straggling  []*coord.Detached    // parts of its end that hang on the disk
	services    atomic.Bool          // the standard services were started
	alone       bool                 // it is not part of a call of Run

	metrics   metrics
	stats     *runStats
	stepsDone atomic.Int64 // as reported by StepDone
	stepsMade atomic.Int64 // counted by StepDone, however the step is set
	points    points
	staleStep staleStep
	stepped   sync.Once
	failed    atomic.Bool // the training failed: no final checkpoint
	ended     atomic.Bool

	firstStepDone chan struct{} // closed when StepDone is first called

	// endPreparation ends the context that NewSession got, which a session may
	// hold on to; nil before that is made.
	endPreparation context.CancelCauseFunc

	stop    sync.Once
	stopErr error
}

// PrepareOrWaitForSession makes the session ready: the chief restores or
// initialises the model, a worker waits for the chief. It starts the services
// and returns the session for the training.
//
// Run calls it, and Stop at the end. A program that calls it directly must
// call Stop, and close the session.
func (sv *Supervisor) PrepareOrWaitForSession(ctx context.Context) (session.Session, error) {
	if !sv.busy.CompareAndSwap(false, true) {
		return nil, errBusy
	}
	sv.stopAsked.Store(false)
	sess, err := sv.beginRun(ctx, true)
	if err != nil {
		sv.busy.Store(false)
	}
	return sess, err
}

var errBusy = errors.New("the supervisor is in a run; call Stop first")

// beginRun begins a run, alone or as part of a call of Run. The caller has made
// the Supervisor busy.
func (sv *Supervisor) beginRun(ctx context.Context, alone bool) (session.Session, error) {
	if err := sv.check(); err != nil {
		return nil, err
	}
	sv.clearStop()
	sv.coord.SetLogger(sv.Logger)
	sv.setCurrent(nil)
	p, err := sv.plan()
	if err != nil {
		return nil, err
	}
	if p.saver != p.inherit {
		p.saver.Inherit(p.inherit)
	}
	r := &run{plan: p, stats: &sv.stats, alone: alone, firstStepDone: make(chan struct{})}
	sv.stats.preparing()
	if err := coord.Guard("preparation", func() error { return sv.begin(ctx, r) }); err != nil {
		sv.coord.RequestStop(nil)
		return nil, errors.Join(err, sv.abandon(r))
	}
	return r.managed, nil
}

// clearStop forgets the previous session's stop, unless it was requested.
func (sv *Supervisor) clearStop() {
	sv.coord.Clear()
	if sv.stopAsked.Load() {
		sv.coord.RequestStop(nil)
	}
}

func (sv *Supervisor) begin(ctx context.Context, r *run) error {
	if err := sv.await("the logdir", func() error { return sv.openLogdir(ctx, r) }); err != nil {
		return err
	}
	r.home = sv.newLogdirWatch(r)
	if err := sv.prepareUnlessStopped(ctx, r); err != nil {
		return err
	}
	step, err := sv.firstStep(ctx, r)
	if err != nil {
		return err
	}
	if !sv.NonChief {
		if err := sv.await("the events file", func() error { return sv.announce(ctx, r, step) }); err != nil {
			return err
		}
	}
	r.steps = sv.newStepTracker(r)
	r.managed, r.hooked = manage(r.sess, r.steps, &r.points), manage(r.sess, nil, nil)
	sv.setCurrent(r)
	if r.lock != nil {
		sv.coord.Go("lock on the logdir", r.home.watch)
	}
	if !sv.NoStandardServices {
		if !sv.NonChief {
			if err := sv.startServices(ctx, r); err != nil {
				return err
			}
		}
		if err := sv.StartQueueRunners(); err != nil {
			return err
		}
	}
	for i, s := range sv.Services {
		sv.coord.Go(fmt.Sprintf("service %d (%T)", i, s), s.Serve)
	}
	return nil
}

// abandon undoes a preparation that failed half-way.
func (sv *Supervisor) abandon(r *run) error {
	err := sv.coord.Join(sv.stopGrace())
	if r.writer != nil && !(sv.KeepSummaryWriter && r.writer == sv.SummaryWriter) {
		err = errors.Join(err, r.writer.Close())
		sv.kept = nil
	}
	if r.sess != nil {
		r.sess.Close()
	}
	if r.endPreparation != nil {
		r.endPreparation(nil)
	}
	sv.setCurrent(nil)
	if r.alone {
		err = errors.Join(err, sv.unlock())
	}
	return err
}

// fs returns the file system that the run writes to: the Saver's, nil for the operating system's.
func (r *run) fs() ckptfmt.FS {
	if r.plan.saver == nil {
		return nil
	}
	return r.plan.saver.FS
}

// lockedFS returns fs for use once the logdir is locked: it does not create the logdir again,
// because a new one would lack the lock, and any other folder of that name belongs to somebody
// else.
func (r *run) lockedFS() ckptfmt.FS {
	if r.lock == nil {
		return r.fs()
	}
	return atomicfile.WithoutMaking(r.fs(), r.lock.Dir())
}

// errStopped ends a preparation for which RequestStop or Stop was called.
const errStopped = StopRequest("the program")

// prepareUnlessStopped gives up when a stop is requested: waiting for a chief or a checkpoint may
// take hours.
func (sv *Supervisor) prepareUnlessStopped(ctx context.Context, r *run) error {
	ctx, r.endPreparation = context.WithCancelCause(ctx)
	unlink := context.AfterFunc(sv.coord.Context(), func() { r.endPreparation(errStopped) })
	defer unlink()
	err := sv.prepareSession(ctx, r)
	if err != nil && isCancellation(err) && context.Cause(ctx) == errStopped {
		return errStopped
	}
	return err
}

func (sv *Supervisor) prepareSession(ctx context.Context, r *run) (err error) {
	manager := sv.SessionManager
	if manager == nil {
		manager = sv.sessionManager(r.plan)
	}
	if sv.NonChief {
		r.sess, err = manager.WaitForSession(ctx)
		return err
	}
	r.sess, r.prepared, err = manager.PrepareSession(ctx)
	if err != nil {
		return err
	}
	if manager.Saver == nil || manager.CheckpointDir == "" {
		return nil
	}
	return sv.await("the checkpoints in the logdir", func() error { return sv.settle(r, manager) })
}

// settle leaves in the logdir what the model was restored from, and nothing that is
// damaged or half written.
func (sv *Supervisor) settle(r *run, manager *SessionManager) error {
	if r.prepared.Restored != "" {
		if err := sv.quarantine(r); err != nil {
			return err
		}
		if r.lock != nil && manager.CheckpointPath == "" {
			r.prepared.Restored = manager.Saver.Reinstate(r.prepared.Restored)
		}
		if err := manager.Saver.MakeCurrent(manager.CheckpointDir, r.prepared.Restored); err != nil {
			return err
		}
	}
	if r.lock == nil {
		return nil // another process may be at work there
	}
	r.lock.Expect(sv.savedWithServers(r.sess, manager.Saver))
	if r.prepared.newest != "" && manager.CheckpointPath == "" {
		manager.Saver.Reinstate(r.prepared.newest) // a save of the same step may have been cut
	}
	if err := manager.Saver.RemoveLeftovers(manager.CheckpointDir, manager.checkpointBasename()); err != nil {
		sv.log().Warn("leftovers of a killed run could not be removed", "err", err)
	}
	return nil
}

func (sv *Supervisor) sessionManager(p *plan) *SessionManager {
	m := &SessionManager{
		NewSession:          sv.newSession(p),
		InitOp:              p.init,
		InitFeeds:           sv.InitFeeds,
		InitFunc:            sv.InitFunc,
		ReadyForLocalInitOp: p.readyForLocalInit,
		LocalInitOp:         p.localInit,
		LocalInitTimeout:    sv.LocalInitTimeout,
		ReadyOp:             p.ready,
		WaitForCheckpoint:   sv.WaitForCheckpoint,
		Adopt:               sv.adoption(),
		BeforeRestore:       sv.BeforeRestore,
		MaxWait:             sv.MaxWait,
		RecoveryWait:        sv.RecoveryWait,
		OnWait:              sv.OnWait,
		Logger:              sv.Logger,
	}
	if !sv.NonChief && sv.Logdir != "" {
		m.Saver = p.saver
		m.CheckpointDir = sv.Logdir
		m.CheckpointBasename = filepath.Base(sv.SavePath())
	}
	return m
}

// firstStep returns the step at which the session begins, or session.NoStep if nothing counts
// steps. A worker may join late.
func (sv *Supervisor) firstStep(ctx context.Context, r *run) (int64, error) {
	name, err := sv.existingStep(ctx, r.sess, r.plan)
	if err != nil {
		return session.NoStep, err
	}
	r.plan.globalStep = name
	if r.plan.globalStep == "" {
		return session.NoStep, nil
	}
	r.plan.stepTensor = stepTensor(r.sess, r.plan)
	step, err := session.ReadStep(ctx, r.sess, r.plan.globalStep)
	switch {
	case sv.NonChief && errors.Is(err, session.ErrFailedPrecondition):
		return session.NoStep, nil // without a ready op a worker does not wait for a value
	case err != nil:
		return session.NoStep, fmt.Errorf("reading the global step: %w", err)
	}
	r.stepsDone.Store(step)
	r.points.upTo.Store(step)
	return step, nil
}

// values returns the present values of the saved variables, or nil if there are none or the session
// does not track their changes.
func (r *run) values(ctx context.Context) *checkpoint.Values {
	if _, tracks := r.sess.(session.ChangeTracker); !tracks || r.plan.saver == nil {
		return nil
	}
	return r.plan.saver.PresentValues(ctx, r.sess)
}

// stalled counts the time that the training waited for a save.
func (r *run) stalled(since time.Time) { r.stats.stalled(time.Since(since)) }
