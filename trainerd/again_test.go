package trainerd

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A worker, too, can be prepared again after a stop: testPrepareSessionAfterStopForNonChief.
func TestAgainAfterStopForNonChief(t *testing.T) {
	m := sessiontest.Counter()
	for _, v := range m.Vars {
		v.Ready = true // by a chief
	}
	sv := newSupervisor(m, "", 0)
	sv.NonChief = true
	for range 2 {
		sess, err := sv.PrepareOrWaitForSession(t.Context())
		sessiontest.MustNoErr(t, err)
		if sv.ShouldStop() {
			t.Error("the stop of the session before is not forgotten")
		}
		m.Step()
		sessiontest.MustNoErr(t, sv.StepDone(t.Context(), 1))
		sessiontest.MustNoErr(t, sv.Stop())
		sessiontest.MustNoErr(t, sess.Close())
	}
	if m.Open != 0 {
		t.Errorf("%d sessions left open", m.Open)
	}
}

// An initialisation that is aborted begins again: test_retry_initialization_on_aborted_error.
func TestInitialisationIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, begins := sessiontest.Counter(), 0
		sv := newSupervisor(m, t.TempDir(), 1)
		sv.MaxRestarts = 1
		sv.InitFunc = func(context.Context, session.Session) error {
			if begins++; begins == 1 {
				return session.ErrAborted
			}
			return nil
		}
		trained := false
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error { trained = true; return nil }))
		if begins != 2 || !trained || m.Open != 0 {
			t.Errorf("initialised %d times, trained: %v, %d sessions left open", begins, trained, m.Open)
		}
	})
}
