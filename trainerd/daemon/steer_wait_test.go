package daemon

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/trainerd/trainerd/trainerd/control"
)

// Who asks a training that waits, or that has no session, is told so at once.
func TestSteerOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := control.NewMonitor("j", "", 1)
		s := newSteering(&training{watch: m}, nil)
		m.Begin(s, 0, 0, "")
		m.Wait("worker 1")
		wants := func(words string) {
			t.Helper()
			err := s.betweenSteps(t.Context(), func(context.Context) error { return nil })
			if _, ok := errors.AsType[*control.RefusedError](err); !ok || !strings.Contains(err.Error(), words) {
				t.Errorf("got %v, want %q", err, words)
			}
		}
		wants("the training waits for worker 1")
		s.t.steer = s
		m.Enter(control.Preparing)
		s.t.endSteering()
		m.Wait("another run")
		wants("waits for another run")
		m.Begin(newSteering(s.t, nil), 0, 0, "")
		wants("there is another")
	})
}
