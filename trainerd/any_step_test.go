package trainerd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/trainerd/internal/sessiontest"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A summary may have any step, as in TensorFlow; only NoStep means the
// current one.
func TestSummaryComputedTakesAnyStep(t *testing.T) {
	m, dir := sessiontest.Counter(), t.TempDir()
	sv := newSupervisor(m, dir, 0)
	sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
		m.Set("global_step", ckptfmt.Scalar(int64(4)))
		var errs []error
		for _, step := range []int64{-7, math.MinInt64, session.NoStep, 9, math.MaxInt64} {
			errs = append(errs, sv.SummaryComputed(ctx, summary.New(summary.Scalar("a", 1)), step))
		}
		return errors.Join(errs...)
	}))
	want := fmt.Sprintf("a(-7) a(%d) a(4) a(9) a(%d)", math.MinInt64, math.MaxInt64)
	if got := strings.Join(events(t, dir)[0], " "); !strings.Contains(got, want) {
		t.Errorf("events %s; want %s", got, want)
	}
}

// The step counter, too, warns of a step that is not raised, and continues at
// once after the step was set back.
func TestStepCounterOfStaleAndSetBackStep(t *testing.T) {
	dir := t.TempDir()
	log, lines := sessiontest.NewLog()
	synctest.Test(t, func(t *testing.T) {
		m := sessiontest.Counter()
		sv := newSupervisor(m, dir, 0)
		sv.SaveSummariesEvery, sv.Logger, sv.SummaryOp = time.Second, log, None()
		sessiontest.MustNoErr(t, sv.Run(t.Context(), func(ctx context.Context, _ session.Session) error {
			stepsUntil := func(last int64) error {
				for n, _ := session.ScalarInt(m.Get("global_step")); n < last; n++ {
					time.Sleep(100 * time.Millisecond)
					if err := sv.StepDone(ctx, m.Step()); err != nil {
						return err
					}
				}
				return nil
			}
			if err := stepsUntil(20); err != nil {
				return err
			}
			m.Set("global_step", ckptfmt.Scalar(int64(0)))
			if err := stepsUntil(10); err != nil {
				return err
			}
			err := sv.StepDone(ctx, 11) // the model is at 10
			time.Sleep(3500 * time.Millisecond)
			return err
		}))
	})
	rates := 0
	for _, e := range events(t, dir)[0] {
		var step int64
		if n, _ := fmt.Sscanf(e, "global_step/sec(%d)", &step); n == 1 && step <= 10 {
			rates++
		}
	}
	if rates < 2 { // one before the step was set back, one at once after that
		t.Errorf("events %v; want a rate at once after the step was set back", events(t, dir)[0])
	}
	sessiontest.WantLog(t, lines, "global step has not been increased")
}
