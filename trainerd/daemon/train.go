package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summaryv1"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/cluster"
	"github.com/trainerd/trainerd/trainerd/daemon/graphrun"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/session"
)

// training is one run of a job's training loop.
type training struct {
	job  *job
	sv   *trainerd.Supervisor
	show progress
	eval *evaluator // nil when there is nothing to evaluate

	replicas *cluster.Replicas // nil when the workers do not wait for each other

	step        int64 // steps done, by all workers
	first, made int64 // the step at which this process began, and steps that it made itself
	summaryStep int64 // the step made last that summaryDue was asked about
	ended       bool  // the input did, before the last step
	early       bool  // the evaluations no longer became better
	nextSummary time.Time
	feeds       program.Feed

	watch   *control.Monitor // may be nil
	beat    *heartbeat       // may be nil
	steer   *steering        // of the current session
	steered program.Feed     // what people have put in place of feeds
	paused  bool
	hparams bool // have been written
}

// run trains until the last step, the end of the input, or until ctx is done.
func (t *training) run(ctx context.Context, sess session.Session) error {
	step, err := t.currentStep(ctx, sess)
	if err != nil {
		return err
	}
	t.step, t.first, t.summaryStep, t.made = step, step, step, 0
	t.feeds = make(program.Feed)
	if t.steered == nil {
		t.steered = make(program.Feed)
	}
	restored := t.origin()
	if err := t.prepare(ctx, sess, step); err != nil {
		return err
	}
	t.job.keepConfig()
	stop, err := t.replicas.Start(ctx, sess, step, t.adopted())
	if err != nil {
		return err
	}
	defer stop()
	if err := t.eval.begin(ctx, t.sv, step, restored != ""); err != nil {
		return err
	}
	if err := t.beginHParams(ctx); err != nil {
		return err
	}
	t.show.begin(step, t.job.steps, restored)
	defer t.show.end()
	t.steer = newSteering(t, sess)
	defer t.endSteering()
	t.beginWatch(step, restored)
	if err := t.train(ctx, sess); err != nil {
		t.watch.Enter(control.Preparing) // another session, if not the end
		if cluster.IsLost(err) {
			t.beat.setReason("a session to replace the lost one: " + err.Error())
		}
		return err
	}
	if t.ended && ctx.Err() == nil {
		if err := t.eval.last(ctx, t, sess); err != nil {
			return err
		}
	}
	if err := t.awaitSaved(ctx, sess); err != nil {
		return err
	}
	t.watch.Enter(control.Stopping)
	return t.complete(ctx)
}

// complete writes that the run is complete, if it is.
func (t *training) complete(ctx context.Context) error {
	switch {
	case t.early || t.job.steps > 0 && t.step >= t.job.steps:
		return errors.Join(session.ErrCompleted, t.endHParams(ctx))
	case t.ended && ctx.Err() == nil && t.made > 0: // else an earlier process has written it
		return t.endHParams(ctx)
	}
	return nil
}

// endSteering has requests refused that come while there is no session.
func (t *training) endSteering() {
	t.watch.Leave(t.steer)
	close(t.steer.closed)
}

// beginWatch shows the session, which is paused if an earlier one was: somebody has to resume it.
func (t *training) beginWatch(step int64, restored string) {
	t.watch.Begin(t.steer, step, t.job.steps, restored)
	if t.paused {
		t.watch.Enter(control.Paused)
	}
}

// currentStep returns the step that the model is at, from which this process
// continues.
func (t *training) currentStep(ctx context.Context, sess session.Session) (int64, error) {
	if t.replicas != nil {
		return t.replicas.Join(ctx, sess)
	}
	return t.job.task.CurrentStep(ctx, sess)
}

// stats returns the counts of the Supervisor, including those of evaluations.
func (t *training) stats() trainerd.Stats {
	s := t.sv.Stats()
	s.EventsDropped += t.eval.droppedEvents()
	return s
}

// origin returns where the model of the session comes from: a checkpoint, or the servers that have
// kept it, or "" for nowhere.
func (t *training) origin() string {
	p := t.sv.Prepared()
	switch {
	case p == nil:
		return ""
	case p.Adopted:
		return t.job.config.Master
	}
	return p.Restored
}

// prepare makes a model on servers known as this run's.
func (t *training) prepare(ctx context.Context, sess session.Session, step int64) error {
	if !t.job.config.IsRemote() || !t.job.config.Supervisor.IsChief {
		return nil
	}
	return t.job.task.Publish(ctx, sess, t.replicas, step, t.adopted())
}

// adopted reports whether the model comes from an earlier process.
func (t *training) adopted() bool {
	p := t.sv.Prepared()
	return p != nil && p.Adopted
}

func (t *training) train(ctx context.Context, sess session.Session) error {
	if t.early = t.eval.hasEnded(t.step); t.early {
		return nil // an earlier run, or a session that was lost, did the last step
	}
	err := t.catchUp(ctx, sess)
	for err == nil && (t.step < t.job.steps || t.job.steps == 0) && !t.sv.ShouldStop() {
		if t.steer.serve(ctx); !t.sv.ShouldStop() {
			err = t.runStep(ctx, sess)
		}
		if err == nil && t.eval.endsEarly() {
			t.early = true
			break
		}
	}
	switch {
	case errors.Is(err, session.ErrOutOfRange):
		t.ended = true
		return nil
	case ctx.Err() != nil && (errors.Is(err, session.ErrCancelled) || errors.Is(err, context.Canceled)):
		return nil // it waited for a queue, which the stop has closed, or for a save
	case ctx.Err() != nil && !t.job.config.Supervisor.IsChief && cluster.IsLost(err):
		return nil // a worker has nothing to save, so it has lost nothing either
	}
	return err
}

// catchUp takes the elements that the steps before a restart took from the input of the graph
// again, so that a resumed training continues with the next ones. It is for checkpoints that lack
// the state of the input.
func (t *training) catchUp(ctx context.Context, sess session.Session) error {
	if len(t.job.program.TakeInput) == 0 || t.job.config.Cluster.Workers > 1 || inputRestored(sess) {
		return nil // which of several workers took what is not known
	}
	for skipped := int64(0); skipped < t.step && ctx.Err() == nil; skipped++ {
		clear(t.feeds)
		if err := t.job.input.Feed(skipped, t.feeds); err != nil {
			return err
		}
		if err := t.job.task.RunInput(ctx, sess, t.feeds, t.job.program.TakeInput); err != nil {
			return fmt.Errorf("skipping the input of step %d: %w", skipped+1, err)
		}
	}
	return nil
}

// runStep trains on one batch, and writes what is due after it. No checkpoint comes between a step
// and its evaluation, which has to be recorded in it, or its summaries, because a run that resumes
// from it does not make them again. But while the step waits for other workers there may be one,
// which itself waits for the summaries.
func (t *training) runStep(ctx context.Context, sess session.Session) error {
	before, measure := t.step, t.stepAndMeasure
	if t.replicas == nil && (t.eval.isDue(t.step+1) || t.summarizes(t.step+1)) {
		measure = t.stepAsOne
	}
	loss, err := measure(ctx, sess)
	if err != nil || t.step == before && ctx.Err() != nil {
		return err
	}
	t.show.step(t.step, loss)
	defer t.watch.Enter(t.watch.Enter(control.Saving)) // as it may have to
	return t.sv.StepDone(ctx, t.step)
}

// stepAsOne is stepAndMeasure with no checkpoint in between.
func (t *training) stepAsOne(ctx context.Context, sess session.Session) (loss float64, err error) {
	err = t.sv.WithoutSaves(ctx, func(ctx context.Context) error {
		loss, err = t.stepAndMeasure(ctx, sess)
		return err
	})
	return loss, err
}

// stepAndMeasure makes a step and evaluates if that is due. A stop may have
// ended it before the step was made.
func (t *training) stepAndMeasure(ctx context.Context, sess session.Session) (loss float64, err error) {
	clear(t.feeds)
	if err := t.job.input.Feed(t.batch(), t.feeds); err != nil {
		return 0, err
	}
	maps.Copy(t.feeds, t.steered)
	fetches, summarize := t.fetches()
	before, begun := t.step, time.Now()
	out, err := t.compute(ctx, sess, fetches)
	if err != nil {
		return 0, fmt.Errorf("step %d: %w", before+1, err)
	}
	if t.step == before && ctx.Err() != nil {
		return 0, nil // others did not do their part of it
	}
	if loss, err = t.readLoss(out); err != nil {
		return 0, err
	}
	t.watch.Step(t.step, loss, time.Since(begun))
	t.beat.setStep(t.step)
	if t.step > before { // else it takes more gradients, and a point would be of a step that has one
		if summarize && out != nil {
			err = t.writeSummary(ctx, loss, out[len(out)-len(t.job.program.Summary):])
		}
		t.noteSummary(before+1, summarize)
	}
	if err != nil {
		return 0, err
	}
	return loss, t.eval.due(ctx, t, sess)
}

// compute runs a step and counts it. It returns nothing for a step that other
// workers have made without this one.
func (t *training) compute(ctx context.Context, sess session.Session, fetches []string) ([]*ckptfmt.Tensor, error) {
	if t.replicas != nil {
		defer t.watch.Enter(t.watch.Enter(control.Waiting))
		out, next, err := t.replicas.RunStep(ctx, sess, t.feeds, fetches, t.step)
		t.step = next
		return out, err
	}
	out, err := t.job.task.RunStep(ctx, sess, t.feeds, fetches, append(t.job.task.RecordStep(t.step, t.feeds), t.job.program.Train...))
	if err != nil {
		return nil, err
	}
	return out, t.advance(ctx, sess)
}

// fetches returns what the next step fetches: the loss, if there is one, the values to show, and
// the summaries when they are due.
func (t *training) fetches() (names []string, summarize bool) {
	if t.job.program.Loss != "" {
		names = append(names, t.job.program.Loss)
	}
	for _, m := range t.job.program.Show {
		names = append(names, m.Tensor)
	}
	if summarize = t.summarizes(t.step + 1); summarize {
		names = slices.Concat(names, t.job.program.Summary)
	}
	return names, summarize
}

// summarizes reports whether the step that will be the given one writes summaries here.
func (t *training) summarizes(step int64) bool {
	return (len(t.job.program.Summary) > 0 || t.job.program.DrawsLoss) && t.job.config.Supervisor.IsChief && t.summaryDue(step)
}

// firstStep returns the names that the next step will be run with, as far as is known
// before there is a session: it is compiled meanwhile.
func (t *training) firstStep() (feeds, fetches, targets []string) {
	fetches, _ = t.fetches()
	feeds = t.job.input.Tensors()
	for name := range t.steered {
		if !slices.Contains(feeds, name) {
			feeds = append(feeds, name)
		}
	}
	return feeds, fetches, t.job.program.Train
}

// batch returns the number of the batch for the next step. Workers share the
// batches out among themselves.
func (t *training) batch() int64 {
	c := t.job.config.Cluster
	switch {
	case t.replicas != nil:
		return t.replicas.Batch(t.step)
	case c.Workers <= 1:
		return t.step
	}
	return t.first + t.made*int64(c.Workers) + int64(c.Task)
}

// advance counts the step. A graph that is not known to count by ones is asked,
// and so is one that several workers train.
func (t *training) advance(ctx context.Context, sess session.Session) error {
	t.made++
	if t.job.program.CountsSteps && t.job.config.Cluster.Workers <= 1 {
		t.step++
		return nil
	}
	step, err := t.job.task.CurrentStep(ctx, sess)
	if err != nil {
		return err
	}
	switch {
	case step > t.step:
		t.step = step
	case len(t.job.program.ApplyGrads) == 0: // else the token was that of a worker that is gone
		if err := t.job.task.CheckModel(ctx, sess); err != nil {
			return err
		}
		return fmt.Errorf("graph.train_op: %s has left the global step at %d, but a step must raise it; name an op that also does so, or export the graph with minimize(loss, global_step=tf.compat.v1.train.get_or_create_global_step())",
			t.job.program.Train[0], step)
	}
	return nil
}

// readLoss reads the loss, and passes on the values to show.
func (t *training) readLoss(out []*ckptfmt.Tensor) (loss float64, err error) {
	loss = math.NaN() // for none
	if out == nil {
		return loss, nil
	}
	if t.job.program.Loss != "" {
		if loss, err = program.ScalarFloat(out[0]); err != nil {
			return 0, fmt.Errorf("loss: %w", err)
		}
		if math.IsNaN(loss) || math.IsInf(loss, 0) {
			return 0, t.nonFiniteLoss(loss)
		}
		out = out[1:]
	}
	for i, m := range t.job.program.Show {
		if !t.show.wants(t.step) {
			break
		}
		text, err := graphrun.DescribeValue(out[i])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m.Name, err)
		}
		t.show.value(m.Name, text)
	}
	return loss, nil
}

func (t *training) nonFiniteLoss(loss float64) error {
	advice := "lower model.learning_rate, or scale the features (data.normalize), and start in a new logdir"
	if t.job.config.IsGraph() {
		advice = "lower the graph's learning rate, or scale what it is fed, and start in a new logdir"
	}
	return fmt.Errorf("the loss is %v at step %d; %s", loss, t.step, advice)
}

// summaryDue reports whether the step that will be the given one is to write
// its summaries. By steps it is a function of the number alone, so that a
// resumed run has the same points. By the clock there are points for a whole
// curve as well, however short the run.
func (t *training) summaryDue(step int64) bool {
	s := t.job.config.Supervisor
	if s.SaveSummariesSteps > 0 {
		// Other workers may have made the very multiple.
		passed := step/s.SaveSummariesSteps > t.summaryStep/s.SaveSummariesSteps
		return step == 1 || step >= t.job.steps && t.job.steps > 0 || passed
	}
	if s.SaveSummariesSecs == 0 {
		return false
	}
	short := step == 1 || t.job.steps > 0 && (step >= t.job.steps || curveBudget{points: summaryPoints}.passed(t.summaryStep, step, t.job.steps))
	return short || !time.Now().Before(t.nextSummary)
}

// noteSummary records that the step was made about which summaryDue was asked.
func (t *training) noteSummary(step int64, written bool) {
	t.summaryStep = step
	if written {
		t.nextSummary = time.Now().Add(t.job.config.Supervisor.SaveSummariesSecs.Duration())
	}
}

// writeSummary writes the summaries of a step, or its loss for a graph that has none.
func (t *training) writeSummary(ctx context.Context, loss float64, encoded []*ckptfmt.Tensor) error {
	ctx = context.WithoutCancel(ctx)
	if t.job.program.DrawsLoss {
		return t.sv.SummaryComputed(ctx, summary.New(summaryv1.Scalar("loss", loss)), t.step)
	}
	return t.sv.SummaryComputed(ctx, encoded, t.step)
}
