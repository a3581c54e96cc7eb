package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/daemon/graphrun"
	"github.com/trainerd/trainerd/trainerd/daemon/program"
	"github.com/trainerd/trainerd/trainerd/dataset"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// Check reads everything that a job needs - config, data, model, logdir - and writes to w what a
// run would do, without doing it. The error holds everything that is wrong, including the data's
// faults if the config has some too.
func Check(ctx context.Context, name string, overrides []config.Override, w io.Writer) error {
	return CheckWith(ctx, name, overrides, nil, w)
}

// CheckWith is [Check] of a config whose data are loaded already, and nil for those
// that are not. It closes them.
func CheckWith(ctx context.Context, name string, overrides []config.Override, data *dataset.Dataset, w io.Writer) error {
	err := check(ctx, name, overrides, data, w)
	if data != nil {
		err = errors.Join(err, data.Close())
	}
	return err
}

func check(ctx context.Context, name string, overrides []config.Override, data *dataset.Dataset, w io.Writer) error {
	c, err := config.Load(name, overrides)
	if err != nil {
		return errors.Join(err, checkData(ctx, c))
	}
	unwritable := checkLogdir(c)
	if c.IsChild() && unwritable == nil {
		return describeChild(c, w)
	}
	if c.IsChild() {
		return unwritable
	}
	j, err := newJobWith(ctx, c, data)
	if err != nil {
		return errors.Join(err, unwritable)
	}
	defer j.close()
	if unwritable != nil {
		return unwritable
	}
	if err := newEvaluator(j).check(); err != nil {
		return err
	}
	s, err := j.probe(ctx)
	if err != nil {
		return err
	}
	defer s.sess.Close()
	if c.Supervisor.IsChief {
		if err := j.saver(j.log).Check(ctx, s.sess); err != nil {
			return err
		}
	}
	if err := j.describe(w, s); err != nil {
		return err
	}
	return j.describeWarmStart(ctx, w, s)
}

// checkData returns what is wrong with the data and the graph of a config that has problems, if the
// problems do not concern their settings.
func checkData(ctx context.Context, c *config.Config) error {
	switch {
	case c == nil:
		return nil
	case c.Data.File == "":
		return checkProgram(c, nil)
	}
	if !c.ValidData() || c.Model.Classes < 0 || c.Model.Inputs < 0 {
		return graphrun.CheckFile(c)
	}
	data, err := dataset.Load(ctx, c.Data.File, c.DatasetOptions())
	if err != nil {
		return errors.Join(err, graphrun.CheckFile(c))
	}
	defer data.Close()
	return checkProgram(c, data)
}

// checkProgram returns what is wrong with the graph.
func checkProgram(c *config.Config, data *dataset.Dataset) error {
	unread := c.IsSet("graph.feeds") && c.Graph.Feeds == nil || c.IsSet("graph.eval_feeds") && c.Graph.EvalFeeds == nil
	if c.Graph.Meta == "" || unread {
		return nil
	}
	_, in, err := graphrun.NewProgram(c, data)
	if err != nil {
		return err
	}
	if data == nil {
		return in.Close()
	}
	return nil // the input is the data
}

// describe writes the table of a job.
func (j *job) describe(w io.Writer, s *resumePoint) error {
	parameters, err := j.program.Parameters()
	if err != nil {
		return err
	}
	c := j.config
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("job", "%s", c.Name)
	if j.data != nil {
		row("data", "%s", c.Data.File)
		rows := fmt.Sprintf("%d to train, %d to test", j.data.TrainRows, j.data.TestRows)
		if n := j.data.Unlabelled; n > 0 {
			rows += fmt.Sprintf("; %d without a label are left out", n)
		}
		row("rows", "%s", rows)
		row("features", "%d", len(j.data.Schema.Features))
	}
	if j.data != nil && j.data.Classes > 0 {
		row("classes", "%d", j.data.Classes)
	}
	row("model", "%s", describeModel(c))
	if c.IsGraph() {
		j.describeGraph(row)
	}
	row("parameters", "%d", parameters)
	row("steps", "%s", j.describeSteps())
	row("checkpoints", "%s", describeSaves(c.Supervisor))
	if j.tester.evaluates() {
		row("eval", "%s", j.describeEval())
	}
	row("logdir", "%s", config.Absolute(c.Logdir))
	row("state", "%s", j.describeResumePoint(s))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range j.sessions.notResumable(nil) {
		fmt.Fprintf(w, "not exactly resumable: %s\n", line)
	}
	if line := sharedEvents(j.program, c); line != "" {
		fmt.Fprintln(w, line)
	}
	return nil
}

// describeGraph says what was found in a graph.
func (j *job) describeGraph(row func(name, format string, args ...any)) {
	p := j.program
	row("train op", "%s", strings.Join(p.Train, ", "))
	if p.Loss != "" {
		row("loss", "%s", p.Loss)
	}
	switch {
	case len(p.Summary) > 0:
		row("summaries", "%s", strings.Join(p.Summary, ", "))
	case p.DrawsLoss:
		row("summaries", "none in the graph; the loss is a curve")
	}
	if in, ok := j.input.(*program.BoundInput); ok && len(in.Train) > 0 {
		names := make([]string, len(in.Train))
		for i, b := range in.Train {
			names[i] = program.NodeOf(b.Tensor)
		}
		row("feeds", "%s", strings.Join(names, ", "))
	}
	if c := j.config.Graph; c.Bundle != "" {
		steps, _ := j.input.Rows()
		row("bundle", "%s, %d steps", c.Bundle, steps)
	}
	if len(p.TakeInput) > 0 {
		row("input", "%s", strings.Join(p.TakeInput, ", "))
	}
}

func (j *job) describeSteps() string {
	switch {
	case j.steps == 0:
		return "until the input ends"
	case j.data == nil:
		return fmt.Sprint(j.steps)
	}
	epochs := float64(j.steps) * float64(j.data.BatchSize()) / float64(j.data.TrainRows)
	return fmt.Sprintf("%d of %d rows (%.4g epochs)", j.steps, j.data.BatchSize(), epochs)
}

func (j *job) describeEval() string {
	e := j.config.Eval
	text := strings.Join(append(describeWhen(e.Steps, e.Secs.Duration()), "at the end"), ", ")
	if b := newBestCheckpoints(j); b != nil {
		text += fmt.Sprintf("; kept by the %s of %s: %d", b.mode(), b.metric, b.keep)
	}
	return text
}

func describeModel(c *config.Config) string {
	if c.IsGraph() {
		return c.Graph.Meta
	}
	text := c.Model.Family
	if len(c.Model.Hidden) > 0 {
		text += fmt.Sprintf(" %v", c.Model.Hidden)
	}
	if c.Model.Optimizer != "" {
		text += ", " + c.Model.Optimizer
	}
	return text
}

// describeWhen says when something is due by the number of steps and by the clock, 0 for never.
func describeWhen(steps int64, every time.Duration) (when []string) {
	if steps > 0 {
		when = append(when, fmt.Sprintf("every %d steps", steps))
	}
	if every > 0 {
		when = append(when, fmt.Sprintf("every %v", every))
	}
	return when
}

func describeSaves(s config.Supervisor) string {
	when := describeWhen(s.SaveModelSteps, s.SaveModelSecs.Duration())
	if len(when) == 0 {
		return "none: a stopped job starts over"
	}
	if s.MaxToKeep == 0 {
		return strings.Join(when, " and ") + "; all are kept"
	}
	return fmt.Sprintf("%s; the newest %d are kept", strings.Join(when, " and "), s.MaxToKeep)
}

func (j *job) describeResumePoint(s *resumePoint) string {
	var b strings.Builder
	switch {
	case s.prefix == "":
		b.WriteString("fresh: begins at step 0" + describeElsewhere(j.config))
	case s.complete:
		fmt.Fprintf(&b, "complete at step %d (%s)", s.step, filepath.Base(s.prefix))
	default:
		fmt.Fprintf(&b, "resumes at step %d (%s)", s.step, filepath.Base(s.prefix))
	}
	b.WriteString(describeHolder(j.config.Logdir))
	for _, d := range s.damaged {
		fmt.Fprintf(&b, "; %s is %s", filepath.Base(d.Prefix), whyNotUsed(d.Err))
	}
	return b.String()
}

// describeHolder says which process has a logdir, "" for none.
func describeHolder(dir string) string {
	var locked *logdir.LockedError
	if errors.As(logdir.Check(dir), &locked) {
		return fmt.Sprintf("; in use by %v", locked.Holder)
	}
	return ""
}

// whyNotUsed says what is wrong with a checkpoint that a run skips.
func whyNotUsed(err error) string {
	if errors.Is(err, ckptfmt.ErrVersion) {
		return fmt.Sprintf("not readable by this release: %v; install a newer release of trainerd", err)
	}
	return fmt.Sprintf("damaged: %v", err)
}
