package trainerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// TestAdoptLiveModel: a chief that comes back takes over a model that its
// servers have kept, ahead of the newest checkpoint; one that is not ready, or
// is another run's, is restored.
func TestAdoptLiveModel(t *testing.T) {
	for name, c := range map[string]struct {
		live, ours bool
		fails      error
		want       int64
	}{
		"alive and ours":      {live: true, ours: true, want: 9},
		"another run's":       {live: true, want: 7},
		"lost by the servers": {ours: true, want: 7},
		"cannot be asked":     {live: true, fails: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prefix := saveStep(t, dir, 7)
			m := sessiontest.Counter()
			if c.live {
				m.Set("global_step", ckptfmt.Scalar(int64(9)))
				m.Set("w", ckptfmt.Scalar(float32(4.5)))
			}
			saver := new(checkpoint.Saver)
			mgr := &SessionManager{NewSession: m.NewSession, InitOp: Nodes("init"), ReadyOp: Func(storeReady), Saver: saver, CheckpointDir: dir,
				Adopt: func(context.Context, session.Session) (bool, error) { return c.ours, c.fails }}
			sess, prepared, err := mgr.PrepareSession(t.Context())
			if c.fails != nil {
				if !errors.Is(err, c.fails) || m.Open != 0 {
					t.Fatalf("got %v with %d sessions open; want %v with none", err, m.Open, c.fails)
				}
				return
			}
			sessiontest.MustNoErr(t, err)
			defer sess.Close()
			if n, _ := session.ScalarInt(m.Get("global_step")); n != c.want {
				t.Errorf("step %d; want %d", n, c.want)
			}
			if adopted := c.want == 9; prepared.Adopted != adopted || (prepared.Restored == "") != adopted {
				t.Errorf("prepared %+v; want adopted %v", *prepared, adopted)
			}
			if diff := cmp.Diff(saver.LastCheckpoints(), []string{prefix}); diff != "" {
				t.Errorf("checkpoints looked after (-got +want):\n%s", diff)
			}
		})
	}
}

// TestAdoptAfterCutSave: a chief was killed while it wrote its only checkpoint once more, and
// comes back to a live model. The checkpoint, which has its second name alone, is not swept away.
func TestAdoptAfterCutSave(t *testing.T) {
	dir := t.TempDir()
	prefix := saveStep(t, dir, 7)
	files, err := filepath.Glob(prefix + ".*")
	sessiontest.MustNoErr(t, err)
	for _, name := range files {
		sessiontest.MustNoErr(t, os.Rename(name, strings.Replace(name, prefix, prefix+".previous", 1)))
	}
	sessiontest.MustNoErr(t, os.WriteFile(prefix+".data-00000-of-00001", []byte("cut"), 0o666))
	m := sessiontest.Counter()
	m.Set("global_step", ckptfmt.Scalar(int64(7)))
	m.Set("w", ckptfmt.Scalar(float32(4.5)))
	sv := &Supervisor{NewSession: m.NewSession, Logdir: dir, SaveModelEvery: -1, InitOp: Nodes("init"), ReadyOp: Func(storeReady),
		Adopt: func(context.Context, session.Session) (bool, error) { return true, nil }}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error { return nil }))
	if c, _, err := ckptdir.NewestIntact(t.Context(), dir); err != nil || c.Prefix != prefix {
		t.Errorf("the newest intact checkpoint is %q, %v; files %v", c.Prefix, err, sessiontest.Files(t, dir, "*"))
	}
}

// TestAdoptWithoutOwnVariables: what a process has for itself was lost with its
// server, while the model is alive on another one. The local init op is all that
// is needed.
func TestAdoptWithoutOwnVariables(t *testing.T) {
	dir := t.TempDir()
	saveStep(t, dir, 7)
	for name, c := range map[string]struct {
		partGone bool // a variable of the model was lost, too
		want     int64
		calls    []string
	}{
		"the model is complete":        {want: 9, calls: []string{"adopt", "local init"}},
		"a part of the model was lost": {partGone: true, want: 7, calls: []string{"adopt", "local init", "before restore", "local init"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := sessiontest.Counter()
			m.Vars["local_step"] = &sessiontest.Variable{Value: ckptfmt.Scalar(int64(0))}
			m.Set("global_step", ckptfmt.Scalar(int64(9)))
			if !c.partGone {
				m.Set("w", ckptfmt.Scalar(float32(4.5)))
			}
			var calls []string
			note := func(name string) { calls = append(calls, name) }
			mgr := &SessionManager{NewSession: m.NewSession, InitOp: Nodes("init"), ReadyOp: Func(storeReady),
				Saver: &checkpoint.Saver{Variables: map[string]string{"global_step": "global_step", "w": "w"}}, CheckpointDir: dir,
				LocalInitOp: Func(func(context.Context, session.Session) error {
					note("local init")
					m.Set("local_step", m.Get("global_step"))
					return nil
				}),
				Adopt:         func(context.Context, session.Session) (bool, error) { note("adopt"); return true, nil },
				BeforeRestore: func(context.Context, session.Session) error { note("before restore"); return nil },
			}
			sess, prepared, err := mgr.PrepareSession(t.Context())
			sessiontest.MustNoErr(t, err)
			defer sess.Close()
			step, _ := session.ScalarInt(m.Get("global_step"))
			local, _ := session.ScalarInt(m.Get("local_step"))
			if step != c.want || local != c.want || prepared.Adopted == c.partGone {
				t.Errorf("step %d, local step %d, prepared %+v; want step %d", step, local, *prepared, c.want)
			}
			if diff := cmp.Diff(calls, c.calls); diff != "" {
				t.Errorf("calls (-got +want):\n%s", diff)
			}
		})
	}
}

// TestBeforeRestoreFails: a model is not replaced while those who use it cannot
// be told.
func TestBeforeRestoreFails(t *testing.T) {
	m := sessiontest.Counter()
	fails := errors.New("no answer")
	mgr := &SessionManager{NewSession: m.NewSession, InitOp: Nodes("init"), ReadyOp: Func(storeReady),
		BeforeRestore: func(context.Context, session.Session) error { return fails }}
	if _, _, err := mgr.PrepareSession(t.Context()); !errors.Is(err, fails) {
		t.Errorf("got %v; want %v", err, fails)
	}
	if m.Vars["w"].Ready || m.Open != 0 {
		t.Errorf("the model was initialised, or %d sessions are open", m.Open)
	}
}

// TestRestartsOfWorker: a worker saves nothing, so its losses in a row are
// counted from the last one after which the training came further.
func TestRestartsOfWorker(t *testing.T) {
	for name, c := range map[string]struct {
		moves bool
		want  int // sessions
	}{
		"the training continues between losses": {moves: true, want: 8},
		"the same step again and again":         {want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := sessiontest.Counter()
				m.Ops["init"](&sessiontest.Session{Model: m}, nil) // as the chief does
				sv := newSupervisor(m, "", 0)
				sv.NonChief, sv.MaxRestarts = true, 2
				sessions := 0
				err := sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
					if sessions++; sessions == 8 {
						return nil
					}
					step := int64(1)
					if c.moves {
						step = m.Step()
					}
					if err := sv.StepDone(ctx, step); err != nil {
						return err
					}
					return session.ErrAborted
				})
				if sessions != c.want || (err == nil) != c.moves {
					t.Errorf("Run = %v after %d sessions; want %d", err, sessions, c.want)
				}
			})
		})
	}
}
