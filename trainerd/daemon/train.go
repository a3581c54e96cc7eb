package daemon

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd"
)

// training is one run of a job's training loop.
type training struct {
	*job
	sv   *trainerd.Supervisor
	show progress

	step        int64 // steps done
	nextSummary time.Time
	feeds       map[string]*ckptfmt.Tensor
	tested      *evaluation // on the test part, at the last step
}

// run trains until the last step, or until ctx is done.
func (t *training) run(ctx context.Context, sess trainerd.Session) error {
	step, err := t.globalStep(ctx, sess)
	if err != nil {
		return err
	}
	t.step = step
	t.feeds = make(map[string]*ckptfmt.Tensor, 2)
	restored := ""
	if p := t.sv.Prepared(); p != nil {
		restored = p.Restored
	}
	t.show.begin(step, t.steps, restored)
	defer t.show.end()
	for t.step < t.steps && ctx.Err() == nil {
		if err := t.makeStep(ctx, sess); err != nil {
			return err
		}
	}
	return nil
}

// makeStep trains on one batch, and writes what is due after it.
func (t *training) makeStep(ctx context.Context, sess trainerd.Session) error {
	x, y := t.data.Batch(t.step)
	t.feeds[t.model.X.Name], t.feeds[t.model.Y.Name] = x, y
	fetches := []string{t.model.Loss}
	summarize := t.summaryDue(t.step + 1)
	if summarize {
		fetches = append(fetches, t.model.SummaryOp)
	}
	out, err := sess.Run(ctx, t.feeds, fetches, []string{t.model.TrainOp})
	if err != nil {
		return fmt.Errorf("step %d: %w", t.step+1, err)
	}
	loss, err := scalarFloat(out[0])
	if err != nil {
		return fmt.Errorf("loss: %w", err)
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("the loss is %v at step %d; lower model.learning_rate, or scale the features (data.normalize), and start in a new logdir", loss, t.step+1)
	}
	t.step++
	if summarize {
		if err := t.writeSummary(ctx, out[1]); err != nil {
			return err
		}
	}
	if err := t.test(ctx, sess); err != nil {
		return err
	}
	t.show.step(t.step, loss)
	return t.sv.StepDone(ctx, t.step)
}

// summaryDue reports whether the step that will be the given one is to write
// its summaries. By steps it is a function of the number alone, so that a
// resumed run has the same points.
func (t *training) summaryDue(step int64) bool {
	s := t.config.Supervisor
	if s.SaveSummariesSteps > 0 {
		return step == 1 || step == t.steps || step%s.SaveSummariesSteps == 0
	}
	if s.SaveSummariesSecs == 0 {
		return false
	}
	now := time.Now()
	if now.Before(t.nextSummary) {
		return false
	}
	t.nextSummary = now.Add(s.SaveSummariesSecs.Duration())
	return true
}

func (t *training) writeSummary(ctx context.Context, encoded *ckptfmt.Tensor) error {
	s, err := parseSummary(encoded)
	if err != nil {
		return err
	}
	return t.sv.SummaryComputed(context.WithoutCancel(ctx), s, t.step)
}

// test evaluates the model on the test part when that is due: after each
// train.eval_steps, and after the last step.
func (t *training) test(ctx context.Context, sess trainerd.Session) error {
	every := t.config.Train.EvalSteps
	if t.data.TestRows == 0 || t.step != t.steps && (every == 0 || t.step%every != 0) {
		return nil
	}
	e, err := t.evaluate(ctx, sess)
	if err != nil {
		return err
	}
	if t.step == t.steps {
		t.tested = &e
	}
	s := tfevents.NewSummary(tfevents.Scalar("test/accuracy", e.accuracy), tfevents.Scalar("test/loss", e.loss))
	return t.sv.SummaryComputed(context.WithoutCancel(ctx), s, t.step)
}
