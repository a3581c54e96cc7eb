package trainerd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// Listeners are told of every save in order, and may end the run.
func TestCheckpointListeners(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		after error // of the save of step 2
		want  error
		told  []string
	}{
		"only listens":  {nil, nil, []string{"before", "after 2", "before", "after 4", "before", "after 5"}},
		"ends the run":  {session.ErrOutOfRange, nil, []string{"before", "after 2"}},
		"fails the run": {boom, boom, []string{"before", "after 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := sessiontest.Counter()
			sv := newSupervisor(m, t.TempDir(), 2)
			var told []string
			done := make(chan struct{}, 10)
			sv.Listeners = []CheckpointListener{ListenerFuncs{}, ListenerFuncs{
				BeforeSaveFunc: func(context.Context, session.Session) error { told = append(told, "before"); return nil },
				AfterSaveFunc: func(_ context.Context, saved SavedCheckpoint) error {
					told = append(told, fmt.Sprintf("after %d", saved.Step))
					done <- struct{}{}
					if saved.Step == 2 {
						return tt.after
					}
					return nil
				},
			}}
			err := sv.Run(t.Context(), func(ctx context.Context, s session.Session) error {
				for range 5 {
					if sv.ShouldStop() {
						return nil
					}
					n := m.Step()
					if err := sv.StepDone(ctx, n); err != nil {
						return err
					}
					if n%2 == 0 {
						<-done
						if tt.after != nil {
							sv.WaitForStop(t.Context())
						}
					}
				}
				return nil
			})
			if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("Run = %v; want %v", err, tt.want)
			}
			if diff := cmp.Diff(told, tt.told); diff != "" {
				t.Errorf("told (-got +want):\n%s", diff)
			}
		})
	}
}

// An error of BeforeSave is a save that failed: the training continues.
func TestListenerRefusesSave(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 2)
	refuse := true
	sv.Listeners = []CheckpointListener{ListenerFuncs{BeforeSaveFunc: func(context.Context, session.Session) error {
		defer func() { refuse = false }()
		if refuse {
			return errors.New("not now")
		}
		return nil
	}}}
	sessiontest.MustNoErr(t, sv.Run(t.Context(), stepsTo(m, sv, 4)))
	if rep := sv.Report(); rep.Saves.Failed != 1 || rep.Saves.Count != 1 {
		t.Errorf("%+v; want one failed and one written", rep.Saves)
	}
}
