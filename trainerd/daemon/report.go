package daemon

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// reportComplete answers a run of a job that has nothing left to do.
func (j *job) reportComplete(ctx context.Context, s *resumePoint, o RunOptions) error {
	// The checkpoint may be of a run that continues, to a later step. What locks
	// the logdir of a worker is its chief, which is about to end as well.
	if j.config.Supervisor.IsChief {
		if err := logdir.Check(j.config.Logdir); err != nil {
			return err
		}
	}
	o.Monitor.Enter(control.Ended)
	fmt.Fprintf(o.Stdout, "job is complete: step %d of %d, %s\n", s.step, j.steps, s.prefix)
	if !j.tester.evaluates() {
		j.reportResult(nil, o)
		return nil
	}
	e, err := j.tester.evaluate(ctx, s.sess)
	if err != nil {
		return err
	}
	j.reportResult(&e, o)
	return nil
}

// reportResult prints how well the model does, and what to type next.
func (j *job) reportResult(e *evaluation, o RunOptions) {
	switch {
	case e == nil:
	case !j.config.IsGraph() && j.config.Model.IsRegression():
		j.reportNumbers(e, o)
	default:
		for i, name := range e.names {
			if _, has := e.value("accuracy"); !has || name != "loss" {
				fmt.Fprintf(o.Stdout, "test %s: %s\n", name, metricText(name, e.values[i]))
			}
		}
		j.reportMajority(e, o)
	}
	saves := j.config.Supervisor.SaveModelSecs > 0 || j.config.Supervisor.SaveModelSteps > 0
	o.suggestNext(j.config, saves)
	if saves && !j.config.IsGraph() {
		if e != nil {
			fmt.Fprintf(o.Stdout, "  %s eval %s\n", o.command("trainerd"), shell.Quote(config.Absolute(j.config.Logdir)))
		}
		fmt.Fprintf(o.Stdout, "  %s predict %s %s\n", o.command("trainerd"), shell.Quote(config.Absolute(j.config.Logdir)), shell.Quote(config.Absolute(j.config.Data.File)))
	}
}

// suggestNext prints what to type after a job.
func (o RunOptions) suggestNext(c *config.Config, checkpoints bool) {
	logdir := shell.Quote(config.Absolute(c.Logdir))
	fmt.Fprintf(o.Stdout, "next:\n  %s tensorboard %s\n", o.command("trainerd"), logdir)
	if checkpoints {
		fmt.Fprintf(o.Stdout, "  %s ls %s\n", o.command("ckpt"), logdir)
	}
}

// command returns how a command of ours is called.
func (o RunOptions) command(name string) string {
	if o.Command == nil {
		return name
	}
	return shell.Quote(o.Command(name))
}

// metricText shows a metric. Three digits of an accuracy are as many as a test
// part supports.
func metricText(name string, v float64) string {
	if name == "accuracy" {
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// reportNumbers prints how well a model predicts numbers, and how well their mean
// would have done.
func (j *job) reportNumbers(e *evaluation, o RunOptions) {
	mse, ok := e.value(program.MSE)
	if !ok {
		mse, _ = e.value("loss")
	}
	j.reportHuber(e, o)
	fmt.Fprintf(o.Stdout, "test mean squared error: %.4g\n", mse)
	training, err := j.data.Statistics()
	if err != nil {
		return // the data have changed under it
	}
	baseline, variance, err := testSpread(j.data, training.Label.Mean)
	if err != nil || variance == 0 {
		return // nothing to compare with
	}
	fmt.Fprintf(o.Stdout, "test RMSE: %.4g; the mean of the training rows gives %.4g\n", math.Sqrt(mse), math.Sqrt(baseline))
	fmt.Fprintf(o.Stdout, "test R2: %.4g\n", 1-mse/variance)
}

// reportMajority prints how often the most frequent class alone would have been right,
// since an accuracy of 0.96 means nothing where nineteen rows in twenty are of one class.
func (j *job) reportMajority(e *evaluation, o RunOptions) {
	if _, has := e.value("accuracy"); !has || j.config.IsGraph() || j.data == nil || j.data.TestRows == 0 || j.data.Classes == 0 {
		return
	}
	share, err := majority(j.data)
	if err != nil {
		return // the data have changed under it
	}
	fmt.Fprintf(o.Stdout, "always the most frequent class: %s\n", metricText("accuracy", share))
}

// majority returns the share of the test rows that the most frequent class has. As for
// accuracy, all count the same.
func majority(data *dataset.Dataset) (share float64, err error) {
	counts := make([]int, data.Classes)
	for row := 0; row < data.TestRows; row += testPart {
		_, y, err := data.Test(row, testPart)
		if err != nil {
			return 0, err
		}
		classes, err := ckptfmt.Values[int64](y)
		if err != nil {
			return 0, err
		}
		for _, class := range classes {
			counts[class]++
		}
	}
	return float64(slices.Max(counts)) / float64(data.TestRows), nil
}

// testPart is how many test rows are read at a time.
const testPart = 1024

// testSpread returns the mean square of what the test labels differ from a
// number, and their variance.
func testSpread(data *dataset.Dataset, from float64) (square, variance float64, err error) {
	sum, squares, n := 0.0, 0.0, float64(data.TestRows)
	err = eachTestLabel(data, func(v float64) {
		d := v - from
		sum += d
		squares += d * d
	})
	return squares / n, squares/n - (sum/n)*(sum/n), err
}

// reportEnd says how a run came to its end.
func (t *training) reportEnd(o RunOptions) {
	o.Monitor.Enter(control.Ended)
	if t.early {
		fmt.Fprintf(o.Stderr, "ended at step %d of %d: %s\n", t.step, t.job.steps, t.eval.early.reason())
	}
	if !t.ended && !t.early && (t.job.steps == 0 || t.step < t.job.steps) {
		t.reportStopped(o)
		return
	}
	if t.ended {
		fmt.Fprintf(o.Stderr, "the input ended at step %d\n", t.step)
	}
	t.job.reportResult(t.eval.newest(), o)
}

// reportStopped reports what a stopped run has saved.
func (t *training) reportStopped(o RunOptions) {
	saved, ok := t.sv.LastSave()
	step := t.step
	if ok { // the session may have ended a step whose result nobody waited for, or other workers have made more
		step = max(step, saved.Step)
	}
	at := fmt.Sprintf("stopped at step %d", step)
	if t.job.steps > 0 {
		at += fmt.Sprintf(" of %d", t.job.steps)
	}
	switch {
	case ok && saved.Step == step:
		fmt.Fprintf(o.Stderr, "%s, and saved\n", at)
	case ok:
		fmt.Fprintf(o.Stderr, "%s; the newest checkpoint is of step %d\n", at, saved.Step)
	default:
		fmt.Fprintln(o.Stderr, at)
	}
	o.sayAgain()
}

// sayAgain says that a job was stopped, and how to continue it.
func (o RunOptions) sayAgain() {
	if o.Stopped != nil {
		o.Stopped()
	}
	if o.Again != "" {
		fmt.Fprintf(o.Stderr, "to resume, type: %s\n", o.Again)
	}
}
