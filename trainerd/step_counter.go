package trainerd

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// stepCounter writes how many steps the training makes per second.
type stepCounter struct {
	log    *slog.Logger
	run    *run
	step   int64
	made   int64              // steps by the count of StepDone
	values *checkpoint.Values // of the variables at step
	at     time.Time          // of step; zero before the first tick

	suspected *checkpoint.Values // of the variables when they had changed and step had not
}

// suspect warns if the global step does not increase. Variables that have changed since it last did
// may have changed in the middle of the next step; if they change once more, the step should have
// increased. done is the step that the training had reported before step was read.
func (c *stepCounter) suspect(ctx context.Context, step, done int64, values *checkpoint.Values) {
	switch {
	case step < done, c.suspected != nil && c.suspected.Compare(ctx) == checkpoint.Changed:
		c.run.staleStep.warn(c.log, step)
	case c.suspected == nil && c.values.Compare(ctx) == checkpoint.Changed:
		c.suspected = values
	}
}

// tick writes the rate since the last point. The first tick only reads the clock, where TensorFlow
// writes a meaningless point. While no step ends there is no point either, and the next point
// covers the whole time.
func (c *stepCounter) tick(ctx context.Context) error {
	values, made, done := c.run.values(ctx), c.run.stepsMade.Load(), c.run.stepsDone.Load()
	step, err := session.ReadStep(ctx, c.run.sess, c.run.plan.globalStep)
	if err != nil {
		return err
	}
	now := time.Now()
	elapsed, steps := now.Sub(c.at), step-c.step
	first := c.at.IsZero()
	if !first && steps == 0 {
		c.suspect(ctx, step, done, values)
		return nil
	}
	c.suspected = nil
	if steps < 0 { // the step was set back
		steps = made - c.made
	}
	c.step, c.made, c.values, c.at = step, made, values, now
	if first || steps <= 0 || elapsed <= 0 {
		return nil
	}
	return c.run.events.AddScalar(ctx, c.run.plan.globalStep+"/sec", float64(steps)/elapsed.Seconds(), step)
}

// staleStep warns, once in a run, that the training does not increase its global step, so that all
// its checkpoints have one name, and all its summaries one step.
type staleStep struct{ once sync.Once }

func (s *staleStep) warn(log *slog.Logger, step int64) {
	s.once.Do(func() {
		log.Warn("it seems that the global step has not been increased, though variables have changed; "+
			"pass the global step to the optimizer's minimize or apply_gradients", "step", step)
	})
}
