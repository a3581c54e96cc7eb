package trainerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/layout"
	"github.com/trainerd/trainerd/internal/logging"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/coord"
	"github.com/trainerd/trainerd/trainerd/session"
)

func (m *SessionManager) restoreOrInit(ctx context.Context, sess session.Session) (*Prepared, error) {
	adopted, err := m.adopt(ctx, sess)
	if err != nil {
		return nil, err
	}
	if adopted {
		newest, err := m.takeOver()
		return &Prepared{Adopted: true, newest: newest}, err
	}
	if m.BeforeRestore != nil {
		if err := m.BeforeRestore(ctx, sess); err != nil {
			return nil, fmt.Errorf("before the model is restored: %w", err)
		}
	}
	if m.InitBeforeRestore {
		if err := m.init(ctx, sess); err != nil {
			return nil, err
		}
	}
	prepared, err := m.restore(ctx, sess)
	if err != nil {
		return nil, err
	}
	if prepared.Restored != "" || m.InitBeforeRestore {
		return prepared, nil
	}
	return prepared, m.init(ctx, sess)
}

// takeOver makes the Saver manage the checkpoints of an adopted model, and returns the newest, or
// "" if there is none.
func (m *SessionManager) takeOver() (newest string, err error) {
	if m.Saver == nil || m.CheckpointDir == "" {
		return "", nil
	}
	found, err := m.find()
	if err != nil || found.IsEmpty() {
		return "", err
	}
	newest = found.Prefixes[0]
	if i := slices.IndexFunc(found.Prefixes, layout.Exists); i >= 0 { // the state file may name one that was being written
		newest = found.Prefixes[i]
	}
	m.Saver.Recover(found, nil, newest)
	return newest, nil
}

// adopt reports whether the session's model is to be kept, and makes it ready. This process's own
// state may be gone with the server that held it, while the model is alive on others, so it is
// initialised again before the model is judged.
func (m *SessionManager) adopt(ctx context.Context, sess session.Session) (bool, error) {
	if m.Adopt == nil {
		return false, nil
	}
	adopted, err := m.Adopt(ctx, sess)
	if adopted && err == nil {
		err = m.localInit(ctx, sess)
	}
	if adopted && err == nil {
		err = m.ReadyOp.ready(ctx, sess)
	}
	switch {
	case errors.Is(err, session.ErrFailedPrecondition): // what reads a variable without a value says
		logging.OrDiscard(m.Logger).Info("the model is no longer complete, and is not adopted", "reason", err)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for the model of an earlier process: %w", err)
	case adopted:
		logging.OrDiscard(m.Logger).Info("the model is alive, and continues as it is")
	}
	return adopted, nil
}

// restore restores the newest intact checkpoint, or none if there is none.
func (m *SessionManager) restore(ctx context.Context, sess session.Session) (*Prepared, error) {
	prepared := new(Prepared)
	if m.Saver == nil {
		return prepared, nil
	}
	if m.CheckpointPath != "" {
		if err := m.load(ctx, sess, m.CheckpointPath); err != nil {
			var mismatch *checkpoint.MismatchError
			if errors.As(err, &mismatch) {
				mismatch.Named = true
			}
			return nil, err
		}
		prepared.Restored, prepared.values = m.CheckpointPath, m.Saver.RestoredValues()
		return prepared, nil
	}
	if m.CheckpointDir == "" {
		return prepared, nil
	}
	found, err := m.awaitCheckpoint(ctx)
	if err != nil || found.IsEmpty() {
		return prepared, err
	}
	return m.restoreFound(ctx, sess, found)
}

// find looks for checkpoints. If the file that names the current one cannot be read, it fails, and
// does not choose another.
func (m *SessionManager) find() (*checkpoint.Found, error) {
	found, err := m.Saver.Find(m.CheckpointDir, m.checkpointBasename())
	if err != nil && ckptdir.IsUnreadable(err) {
		err = fmt.Errorf("%w\nit says which checkpoint is the current one: make it readable, and start again", err)
	}
	return found, err
}

// awaitCheckpoint looks for checkpoints, and if asked to, waits for one.
func (m *SessionManager) awaitCheckpoint(ctx context.Context) (*checkpoint.Found, error) {
	deadline := time.Now().Add(m.maxWait())
	for {
		found, err := m.find()
		if err != nil || !found.IsEmpty() || !m.WaitForCheckpoint {
			return found, err
		}
		if m.MaxWait >= 0 && !time.Now().Before(deadline) {
			return found, nil
		}
		logging.OrDiscard(m.Logger).Info("waiting for a checkpoint", "dir", m.CheckpointDir, "retry_in", m.recoveryWait())
		if !coord.Sleep(ctx, m.recoveryWait()) {
			return nil, context.Cause(ctx)
		}
	}
}

// restoreFound tries the checkpoints in order. It skips one that is damaged or missing, but not one
// of a different model, because the older ones are of that model too, nor one that cannot be read,
// because it may be intact.
func (m *SessionManager) restoreFound(ctx context.Context, sess session.Session, found *checkpoint.Found) (*Prepared, error) {
	prepared := new(Prepared)
	log := logging.OrDiscard(m.Logger)
	if found.StateErr != nil {
		log.Warn("checkpoint state is unreadable; using the files in the directory", "err", found.StateErr)
	}
	for _, prefix := range found.Prefixes {
		err := m.restoreOne(ctx, sess, prefix)
		if err == nil {
			log.Info("restored", "checkpoint", prefix)
			prepared.Restored, prepared.values = prefix, m.Saver.RestoredValues()
			m.Saver.Recover(found, prepared.Damaged, prefix)
			return prepared, nil
		}
		var bad *checkpoint.Error
		if !errors.As(err, &bad) {
			return nil, err
		}
		if ckptdir.IsUnreadable(err) {
			return nil, &checkpoint.UnreadableError{Checkpoint: bad, State: found.State}
		}
		log.Error("checkpoint cannot be used; trying an older one", "checkpoint", prefix, "file", bad.File, "err", bad.Err)
		prepared.Damaged = append(prepared.Damaged, bad)
	}
	return nil, &checkpoint.NoIntactError{Dir: m.CheckpointDir, Tried: prepared.Damaged, Newer: found.Newer, State: found.State}
}

// restoreOne restores a checkpoint. If that fails although it is neither damaged nor missing, it is
// tried again: the reason may have been a slow disk, or too many open files.
func (m *SessionManager) restoreOne(ctx context.Context, sess session.Session, prefix string) error {
	err := m.load(ctx, sess, prefix)
	var bad *checkpoint.Error
	var corrupt *ckptfmt.CorruptError
	if !errors.As(err, &bad) || errors.As(err, &corrupt) || errors.Is(err, ckptfmt.ErrVersion) || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
		return err
	}
	logging.OrDiscard(m.Logger).Warn("checkpoint could not be read; trying again", "checkpoint", prefix, "err", err)
	return m.load(ctx, sess, prefix)
}

// load restores a checkpoint, whose disk may take long to answer.
func (m *SessionManager) load(ctx context.Context, sess session.Session, prefix string) error {
	return logging.Await(logging.OrDiscard(m.Logger).Warn, "checkpoint "+prefix+" to be restored", func() error {
		return m.Saver.Restore(ctx, sess, prefix)
	})
}
