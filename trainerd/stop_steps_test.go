package trainerd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// NumSteps counts from the step at which a run begins, however many steps there
// are to a call: upstream's test_stop_based_with_multiple_steps.
func TestStopAfterNumStepsWithMultipleSteps(t *testing.T) {
	for _, tt := range []struct{ begin, perCall, numSteps, want int64 }{
		{0, 10, 10, 10},
		{5, 5, 10, 15},
		{5, 4, 10, 17}, // the first call that comes to step 15
		{0, 1, 3, 3},
		{7, 1, 3, 10},
		{-10, 1, 4, -6}, // TensorFlow takes any int64
		{-10, 1, 10, 0},
	} {
		dir := t.TempDir()
		if tt.begin > 0 {
			saveStep(t, dir, tt.begin)
		}
		m := sessiontest.Counter()
		if tt.begin < 0 {
			m.Set("global_step", ckptfmt.Scalar(tt.begin))
		}
		sv := newSupervisor(m, dir, 1000)
		sv.Hooks = []Hook{&StopAtStep{NumSteps: tt.numSteps}}
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			step, err := session.ScalarInt(m.Get("global_step"))
			for err == nil {
				step += tt.perCall
				m.Set("global_step", ckptfmt.Scalar(step))
				err = sv.StepDone(ctx, step)
			}
			if !errors.Is(err, session.ErrCompleted) {
				t.Errorf("%+v: the training ends with %v; want ErrCompleted", tt, err)
			}
			return err
		}))
		if n, _ := session.ScalarInt(m.Get("global_step")); n != tt.want {
			t.Errorf("%+v: ended at step %d; want %d", tt, n, tt.want)
		}
	}
}

// Settings may be read while the training changes the interval; the race
// detector sees to it.
func TestSettingsBesideSetSaveModelEvery(t *testing.T) {
	m := sessiontest.Counter()
	sv := newSupervisor(m, t.TempDir(), 0)
	sv.SaveModelEvery = Long
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(context.Context, session.Session) error {
		read := make(chan error, 1)
		go func() {
			var err error
			for range 100 {
				_, settingsErr := sv.Settings()
				err = errors.Join(err, settingsErr)
			}
			read <- err
		}()
		for i := range 100 {
			if err := sv.SetSaveModelEvery(time.Duration(i+1) * time.Hour); err != nil {
				return err
			}
		}
		return <-read
	}))
	if s, err := sv.Settings(); err != nil || s.SaveModelEvery != 100*time.Hour {
		t.Errorf("SaveModelEvery is %v, %v; want 100 hours", s.SaveModelEvery, err)
	}
}
