package trainerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/logging"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Defaults of SessionManager and Supervisor, as in TensorFlow.
const (
	DefaultRecoveryWait = 30 * time.Second
	DefaultMaxWait      = 7200 * time.Second
)

// firstPoll is how long a waiting replica sleeps at first. The pauses double
// up to RecoveryWait, so that a short job does not wait half a minute.
const firstPoll = time.Second

// SessionManager makes sessions whose model is ready for use: restored from a
// checkpoint, initialised, or made ready by another process.
//
// The zero Op does nothing here; the [Supervisor] fills in its defaults.
//
// A SessionManager is used by one goroutine at a time.
type SessionManager struct {
	// NewSession makes an empty session. Required. A session that turns out to
	// be unusable is closed again.
	NewSession func(ctx context.Context) (session.Session, error)

	// InitOp initialises a model that was not restored, fed with InitFeeds;
	// then InitFunc is called.
	InitOp    Op
	InitFeeds map[string]*ckptfmt.Tensor
	InitFunc  func(ctx context.Context, s session.Session) error

	// ReadyForLocalInitOp says whether LocalInitOp may run. Like ReadyOp, it
	// returns the names of variables that are not ready. Setting it without
	// LocalInitOp is an error.
	ReadyForLocalInitOp Op
	// LocalInitOp initialises each process's own state. It also runs after a
	// restore.
	LocalInitOp Op
	// LocalInitTimeout bounds one run of LocalInitOp, unless it is zero.
	LocalInitTimeout time.Duration
	// ReadyOp says whether the model may be used: it returns a vector with the
	// names of variables that have no value. None means always.
	ReadyOp Op

	// Saver restores checkpoints. Without it there is no recovery.
	Saver *checkpoint.Saver
	// CheckpointDir is searched for the newest intact checkpoint, in the order
	// of [checkpoint.Find].
	CheckpointDir string
	// CheckpointBasename begins the names of checkpoints in CheckpointDir that
	// the `checkpoint` file does not list. "" means "model.ckpt".
	CheckpointBasename string
	// CheckpointPath is the prefix of the one checkpoint to restore. Only one
	// of CheckpointDir and CheckpointPath may be set.
	CheckpointPath string
	// InitBeforeRestore runs the init op even if a checkpoint is then
	// restored: for a Saver that covers only some of the variables.
	InitBeforeRestore bool

	// Adopt, if not nil, is called before anything is restored or initialised.
	// It reports whether the model that is alive in the session belongs to this
	// run and continues as it is. LocalInitOp then initialises this process's
	// own state; if ReadyOp still finds the model incomplete, it is restored
	// after all. It is for runtimes that outlive the process.
	Adopt func(ctx context.Context, s session.Session) (bool, error)
	// BeforeRestore, if not nil, is called before a model is restored or
	// initialised, but not before it is adopted. It can warn other users of
	// the model that is about to be replaced.
	BeforeRestore func(ctx context.Context, s session.Session) error

	// WaitForCheckpoint lets PrepareSession wait up to MaxWait for a checkpoint
	// to appear before it initialises.
	WaitForCheckpoint bool
	// MaxWait bounds waiting. Zero means DefaultMaxWait, negative: forever.
	MaxWait time.Duration
	// RecoveryWait is the longest pause between two attempts. Zero means
	// DefaultRecoveryWait.
	RecoveryWait time.Duration

	// OnWait, if not nil, is called each time that WaitForSession finds the model
	// not ready, with the reason.
	OnWait func(reason error)

	// Logger receives messages about restoring and waiting. Nil discards them.
	Logger *slog.Logger
}

// Prepared describes how a session was prepared.
type Prepared struct {
	// Restored is the prefix of the checkpoint that the model was restored
	// from, or "" if it was initialised.
	Restored string
	// Adopted says that the model was found alive, see SessionManager.Adopt.
	Adopted bool
	// Damaged lists newer checkpoints that were skipped.
	Damaged []*checkpoint.Error

	values *checkpoint.Values // that were restored
	newest string             // prefix of the newest checkpoint that an adopted model has, "" for none
}

// PrepareSession makes a session and restores the newest intact checkpoint into
// it, or otherwise initialises it; then it runs the local init op and checks
// that the model is ready. This is what the chief does.
func (m *SessionManager) PrepareSession(ctx context.Context) (session.Session, *Prepared, error) {
	sess, err := m.newSession(ctx)
	if err != nil {
		return nil, nil, err
	}
	ready := false
	defer func() {
		if !ready { // also where an init function has panicked
			sess.Close()
		}
	}()
	prepared, err := m.restoreOrInit(ctx, sess)
	if err != nil {
		return nil, nil, err
	}
	if !prepared.Adopted { // else adopt has done it
		if err := m.localInit(ctx, sess); err != nil {
			return nil, nil, m.initFailed("local init", err)
		}
		if err := m.ReadyOp.ready(ctx, sess); err != nil {
			return nil, nil, m.initFailed("use", err)
		}
	}
	ready = true
	return sess, prepared, nil
}

// WaitForSession makes sessions until one finds the model ready: initialised
// or restored by the chief. It also waits if the runtime cannot be reached yet,
// or if an attempt took too long. It gives up with ErrDeadlineExceeded if the
// next attempt would be later than MaxWait; the context of a NewSession that is
// still running is then cancelled.
func (m *SessionManager) WaitForSession(ctx context.Context) (session.Session, error) {
	deadline := time.Now().Add(m.maxWait())
	wait := min(firstPoll, m.recoveryWait())
	var reason error
	for {
		sess, err := m.attempt(ctx, deadline)
		if err == nil {
			return sess, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var notReady *NotReadyError
		switch {
		case errors.Is(err, session.ErrDeadlineExceeded) && reason != nil:
			err = reason // it says more than that this attempt took long
		case !errors.As(err, &notReady) && !isLost(err) && !errors.Is(err, session.ErrDeadlineExceeded):
			return nil, err
		}
		reason = err
		if m.MaxWait >= 0 && time.Until(deadline) < wait {
			return nil, &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED, Err: err,
				Message: fmt.Sprintf("session was not ready after waiting %v; is the chief running?", m.maxWait())}
		}
		logging.OrDiscard(m.Logger).Info("waiting for the chief to make the model ready", "reason", err, "retry_in", wait)
		if m.OnWait != nil {
			m.OnWait(err)
		}
		if !coord.Sleep(ctx, wait) {
			return nil, context.Cause(ctx)
		}
		wait = min(2*wait, m.recoveryWait())
	}
}

// RecoverSession makes a session and restores the model if there is a
// checkpoint. It reports whether the model is restored and ready; if not, the
// session can be used to initialise it.
func (m *SessionManager) RecoverSession(ctx context.Context) (_ session.Session, ready bool, err error) {
	sess, err := m.newSession(ctx)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			sess.Close()
		}
	}()
	prepared, err := m.restore(ctx, sess)
	if err != nil {
		return nil, false, err
	}
	err = m.localInit(ctx, sess)
	if err == nil {
		err = m.ReadyOp.ready(ctx, sess)
	}
	var notReady *NotReadyError
	if errors.As(err, &notReady) {
		logging.OrDiscard(m.Logger).Info("model is not ready after recovery", "reason", err)
		return sess, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return sess, prepared.Restored != "", nil
}

func (m *SessionManager) newSession(ctx context.Context) (session.Session, error) {
	switch {
	case m.NewSession == nil:
		return nil, errors.New("SessionManager.NewSession is not set")
	case m.CheckpointDir != "" && m.CheckpointPath != "":
		return nil, errors.New("SessionManager: CheckpointDir and CheckpointPath are both set; set one")
	case !m.ReadyForLocalInitOp.IsNone() && m.LocalInitOp.IsNone():
		return nil, errors.New("SessionManager: ReadyForLocalInitOp is set without LocalInitOp")
	}
	sess, err := m.NewSession(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("making a session: %w", err)
	case sess == nil:
		return nil, errors.New("NewSession gave neither a session nor an error")
	}
	return sess, nil
}

// attempt is one try of a replica that is not the chief.
func (m *SessionManager) attempt(ctx context.Context, deadline time.Time) (_ session.Session, err error) {
	sess, err := m.newSessionBy(ctx, deadline)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			sess.Close()
		}
	}()
	if err := m.localInit(ctx, sess); err != nil {
		return nil, err
	}
	if err := m.ReadyOp.ready(ctx, sess); err != nil {
		return nil, err
	}
	return sess, nil
}

// newSessionBy is newSession that is cancelled at the deadline, unless waiting
// has no bound.
func (m *SessionManager) newSessionBy(ctx context.Context, deadline time.Time) (session.Session, error) {
	if m.MaxWait < 0 {
		return m.newSession(ctx)
	}
	bounded, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(time.Until(deadline), func() { cancel(tookTooLong(nil)) })
	sess, err := m.newSession(bounded)
	inTime := timer.Stop()
	if inTime && err == nil {
		return sess, nil // which may continue to use its context
	}
	cancel(err)
	switch {
	case err == nil:
		sess.Close()
		return nil, tookTooLong(nil)
	case inTime || errors.Is(err, session.ErrDeadlineExceeded):
		return nil, err
	}
	return nil, tookTooLong(err)
}

func tookTooLong(err error) error {
	return &session.OpError{Code: tfpb.Code_DEADLINE_EXCEEDED, Message: "making a session took too long", Err: err}
}

func (m *SessionManager) init(ctx context.Context, sess session.Session) error {
	if m.InitOp.IsNone() && m.InitFunc == nil && m.LocalInitOp.IsNone() {
		return errors.New("the model has no checkpoint, and no init op, init function or local init op was given; " +
			"set one of them, or put a checkpoint into the logdir")
	}
	if _, err := m.InitOp.run(ctx, sess, m.InitFeeds); err != nil {
		return fmt.Errorf("init op %v: %w", m.InitOp, err)
	}
	if m.InitFunc == nil {
		return nil
	}
	if err := m.InitFunc(ctx, sess); err != nil {
		return fmt.Errorf("init function: %w", err)
	}
	return nil
}

// localInit runs the local init op if the model is ready for it. A
// *NotReadyError says that it is not.
func (m *SessionManager) localInit(ctx context.Context, sess session.Session) error {
	if m.LocalInitOp.IsNone() {
		return nil
	}
	if err := m.ReadyForLocalInitOp.ready(ctx, sess); err != nil {
		return err
	}
	if m.LocalInitTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.LocalInitTimeout)
		defer cancel()
	}
	if _, err := m.LocalInitOp.run(ctx, sess, nil); err != nil {
		return fmt.Errorf("local init op %v: %w", m.LocalInitOp, err)
	}
	return nil
}

// initFailed names what was run when the model is still not ready for it.
func (m *SessionManager) initFailed(what string, err error) error {
	var notReady *NotReadyError
	if !errors.As(err, &notReady) {
		return err
	}
	ran := []string{"init op: " + m.InitOp.String(), "local init op: " + m.LocalInitOp.String()}
	if m.InitFunc != nil {
		ran = append(ran, "init function: given")
	}
	return fmt.Errorf("init operations did not make the model ready for %s (%s): %w", what, strings.Join(ran, "; "), err)
}

func (m *SessionManager) maxWait() time.Duration {
	if m.MaxWait == 0 {
		return DefaultMaxWait
	}
	return m.MaxWait
}

func (m *SessionManager) checkpointBasename() string {
	if m.CheckpointBasename == "" {
		return DefaultCheckpointBasename
	}
	return m.CheckpointBasename
}

func (m *SessionManager) recoveryWait() time.Duration {
	if m.RecoveryWait <= 0 {
		return DefaultRecoveryWait
	}
	return m.RecoveryWait
}
