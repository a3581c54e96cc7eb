package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/recipe"
)

// runChild has a program train, and keeps it alive.
func runChild(ctx context.Context, c *config.Config, o RunOptions) error {
	sv := childSupervisor(c)
	log, show := o.reporting()
	stdout, stderr := o.screens(show)
	if err := checkHolder(c, log); err != nil {
		return err
	}
	sv.Log, sv.Stdout, sv.Stderr, sv.FS, sv.System = log, stdout, stderr, o.FS, o.System
	sv.Config = programConfig(c, log)
	c.LogIdleKeys(log)
	warnElsewhere(c, log)
	if why := hidesEnd(c.Child.Command); why != "" {
		log.Warn("the exit code of this command does not say how the program ended: " + why)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	o.Monitor.OnStop(func() { stop(stopRequest) })
	defer o.serve(log)()
	w := &childWatch{show: show, monitor: o.Monitor, job: &childJob{sv, c}, steps: c.Train.Steps, follows: c.Child.Nodes > 1}
	sv.Observer = w
	o.Monitor.Count(sv.Stats)
	defer context.AfterFunc(ctx, func() { o.Monitor.Enter(control.Stopping) })() // the program may take its time
	exit, err := sv.Run(ctx)
	w.end()
	if err != nil {
		if is[*child.SaveLostError](err) {
			o.sayAgain()
		}
		return err
	}
	o.Monitor.Enter(control.Ended)
	if exit.Cause == child.Stopped {
		w.reportStopped(o)
		return nil
	}
	fmt.Fprintf(o.Stdout, "job is complete: the program has succeeded%s\n%s%s", w.at(), w.shortfall(), w.silence())
	o.suggestNext(c, c.Child.Checkpoints != "")
	return nil
}

// childWatch shows how a program goes. It is called by the goroutine of
// child.Supervisor.Run alone.
type childWatch struct {
	show    progress
	monitor *control.Monitor
	job     *childJob
	steps   int64

	showing bool
	begun   bool  // there was a start, so that the monitor has the job
	step    int64 // of the newest report, 0 for none
	stepAt  time.Time
	stride  int64 // steps between the newest two reports
	saved   child.Checkpoint

	reported bool // a line was understood
	resumed  bool // the newest start was given a checkpoint
	follows  bool // curves are another node's to draw
}

// Started begins the display again.
func (w *childWatch) Started(_ int, c *child.Checkpoint) {
	w.end()
	restored, step := "", int64(0)
	if w.resumed = c != nil; w.resumed {
		restored, step = c.Path, c.Reached() // below 0 where its name has none
	}
	w.show.begin(step, w.steps, restored)
	w.step = max(step, 0)
	w.showing, w.begun, w.stepAt = true, true, time.Now()
	w.monitor.Begin(w.job, w.step, w.steps, restored)
	w.monitor.Enter(control.Supervising)
}

// Reported shows a step.
func (w *childWatch) Reported(r *child.Report) {
	now := time.Now()
	w.reported = true
	loss := lossOf(r)
	for _, v := range r.Values {
		w.monitor.Scalar(v.Tag, v.Value, r.Step)
	}
	if w.show.wants(r.Step) {
		for _, v := range otherValues(r) {
			w.show.value(v.Tag, rounded(v.Value))
		}
	}
	w.show.step(r.Step, loss)
	var took time.Duration
	if steps := r.Step - w.step; steps > 0 {
		took = now.Sub(w.stepAt) / time.Duration(steps)
		w.stepAt, w.stride = now, steps
	}
	w.step = max(w.step, r.Step)
	w.monitor.Step(w.step, loss, took)
}

// Saved shows a checkpoint.
func (w *childWatch) Saved(c child.Checkpoint) {
	w.saved = c
	w.show.saved(c.Step)
	if !w.reported && c.Step > w.step { // this alone says how far it is
		w.step = c.Step
		w.monitor.Step(w.step, math.NaN(), 0)
	}
	w.monitor.Saved(trainerd.SavedCheckpoint{Step: c.Step, Prefix: c.Path, Time: c.Saved})
}

// Paused shows whether the program is suspended.
func (w *childWatch) Paused(on bool) {
	if !w.begun { // the chief before has paused the job, and somebody has to resume it
		w.begun = true
		w.monitor.Begin(w.job, 0, w.steps, "")
	}
	if on {
		w.monitor.Enter(control.Paused)
	} else {
		w.monitor.Enter(control.Supervising)
	}
}

// Waits shows what the run waits for between two starts.
func (w *childWatch) Waits(what string) { w.monitor.Wait(what) }

// Ended ends the display until the next start.
func (w *childWatch) Ended(e child.Exit, again bool, _ time.Duration) {
	w.end()
	w.monitor.Enter(control.Preparing)
	if e.DiskFull && again {
		w.monitor.Wait("room on the disk")
	}
}

func (w *childWatch) end() {
	if w.showing {
		w.show.end()
		w.showing = false
	}
}

// at says how far the program has come, according to its reports and to what it has saved.
func (w *childWatch) at() string {
	step := max(w.step, w.saved.Step)
	if step <= 0 {
		return ""
	}
	return fmt.Sprintf(" at step %d", step)
}

// shortfall says that a program has ended before its last step according to its reports, or returns
// "" if it has not. It may have done so on purpose, or a launcher may have hidden that it failed.
func (w *childWatch) shortfall() string {
	if !w.reported || w.steps <= 0 || max(w.step, w.saved.Step)+2*w.stride >= w.steps {
		return ""
	}
	return fmt.Sprintf("that is before train.steps, %d: right if it stops early on purpose; if it has failed, what started it has hidden its exit code\n", w.steps)
}

// silence says that there are no curves, or returns "" if there are some.
func (w *childWatch) silence() string {
	if w.reported || w.follows {
		return ""
	}
	if w.resumed {
		return "it was given a checkpoint and has reported nothing: it had nothing left to do, or none of its lines was understood\n"
	}
	return "no line of its output was understood, so there are no curves: have it print lines like \"step=120 loss=0.31\", " +
		"or set child.patterns to what its lines look like, or child.recipe to a file begun by `trainerd init --recipe plain`\n"
}

// reportStopped reports what a stopped program has saved.
func (w *childWatch) reportStopped(o RunOptions) {
	text := "stopped" + w.at()
	switch {
	case w.follows && !w.reported: // the step that it has resumed from is not where it was stopped
		text = "stopped"
	case w.saved.Path != "" && w.saved.Step >= w.step:
		text += ", and saved"
	case w.saved.Path != "":
		text += fmt.Sprintf("; the newest checkpoint is %s", w.saved.Path)
	}
	fmt.Fprintln(o.Stderr, text)
	o.sayAgain()
}

// lossOf returns the value to show as the loss, NaN for none.
func lossOf(r *child.Report) float64 {
	if v, ok := r.Loss(); ok {
		return v
	}
	return math.NaN()
}

// otherValues returns a few values to show in addition to the loss.
func otherValues(r *child.Report) (some []child.Value) {
	const few = 3
	for _, v := range r.Values {
		if !strings.HasSuffix(v.Tag, "loss") && len(some) < few {
			some = append(some, v)
		}
	}
	return some
}

// childJob is a program as other goroutines may steer it: a [control.Job].
type childJob struct {
	sv     *child.Supervisor
	config *config.Config
}

// Save has the program write a checkpoint.
func (j *childJob) Save(ctx context.Context) (trainerd.SavedCheckpoint, error) {
	begun := time.Now()
	c, err := j.sv.Save(ctx)
	return trainerd.SavedCheckpoint{Step: c.Step, Prefix: c.Path, Time: c.Saved, Took: time.Since(begun)}, refused(err)
}

// Pause suspends the program.
func (j *childJob) Pause(ctx context.Context) error { return refused(j.sv.Pause(ctx)) }

// Resume lets it continue.
func (j *childJob) Resume(ctx context.Context) error { return refused(j.sv.Resume(ctx)) }

// Keep protects a checkpoint from rotation.
func (j *childJob) Keep(step int64) (string, error) {
	c, err := j.sv.Keep(context.Background(), step)
	return c.Path, refused(err)
}

// Note writes a text into the events file.
func (j *childJob) Note(ctx context.Context, text string) error {
	return refused(j.sv.Note(ctx, noteTag, text))
}

// refused makes an error one that the asker can do something about, unless it
// is of the system.
func refused(err error) error {
	var path *os.PathError
	if err == nil || errors.As(err, &path) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return control.Refusef("%v", err)
}

// isTerminal reports whether w shows text to a person at once.
func isTerminal(w io.Writer) bool {
	f, ok := w.(screen)
	return ok && term.IsTerminal(int(f.Fd()))
}

// screens returns where the output of a program or of the graph's ops goes: above
// the progress bar, if there is one.
func (o RunOptions) screens(show progress) (stdout, stderr io.Writer) {
	bar, ok := show.(*barProgress)
	switch {
	case !ok:
		return o.Stdout, o.Stderr
	case isTerminal(o.Stdout):
		return bar, bar
	}
	return o.Stdout, bar
}

// childSupervisor returns what keeps the program of a job alive.
func childSupervisor(c *config.Config) *child.Supervisor {
	s, x := c.Supervisor, c.Child
	sv := &child.Supervisor{
		Command: x.Command, Dir: x.Dir, Env: x.Env.Environ(), Logdir: c.Logdir, Checkpoints: x.Checkpoints, Steps: c.Train.Steps,
		Nodes: x.Nodes, Node: x.Node,
		Restarts: child.Restarts{
			Max: x.MaxRestarts, Window: x.RestartWindowSecs.Duration(),
			Backoff: x.BackoffSecs.Duration(), MaxBackoff: x.MaxBackoffSecs.Duration(),
		},
		Grace: s.StopGraceSecs.OrOff(), HangAfter: x.HangSecs.Duration(),
		SaveSignal: x.Signal(), SaveEvery: c.ChildSaveEvery(), SaveSteps: s.SaveModelSteps,
		SaveBudget:     trainerd.SaveBudget{MaxShare: s.MaxSaveShare, MaxRisk: s.MaxRiskSecs.Duration()},
		SummariesEvery: s.SaveSummariesSecs.OrOff(),
	}
	if x.MaxRestarts == 0 {
		sv.Restarts.Max = -1
	}
	sv.HParams = c.HParams()
	sv.ResumeArgs, sv.MaxRewinds, sv.Loss = x.ResumeArgs, x.MaxRewinds, x.Loss
	if r, err := recipe.Load(x.Recipe); err == nil { // was checked
		sv.Lines = func(step int64) child.LineReader { return recipeLines{r.NewReader(step)} }
		sv.Env = append(r.EnvOf(recipe.Source(x.Dir, x.Command), isSet), sv.Env...)
	}
	for _, text := range x.Patterns {
		sv.Patterns = append(sv.Patterns, regexp.MustCompile(text)) // was checked
	}
	if s.MaxToKeep > 0 {
		sv.Retention = append(keepPolicies(c), retention.Steps(s.KeepSteps))
		if x.KeepBest > 0 {
			sv.Retention = append(sv.Retention, retention.Best{Metric: x.Metric, Highest: !lessIsBetter(x.Mode, x.Metric), N: x.KeepBest})
		}
	}
	return sv
}

// isSet reports whether the environment has a variable.
func isSet(key string) bool {
	_, ok := os.LookupEnv(key)
	return ok
}

// recipeLines lets a recipe read the lines of a program: a [child.LineReader].
type recipeLines struct{ *recipe.Reader }

// Read reads a line.
func (l recipeLines) Read(line string) *child.Report { return reportOf(l.Reader.Read(line)) }

// Flush returns the remaining reports at the end.
func (l recipeLines) Flush() *child.Report { return reportOf(l.Reader.Flush()) }

// reportOf converts a recipe's point to a report.
func reportOf(p *recipe.Point) *child.Report {
	if p == nil {
		return nil
	}
	r := &child.Report{Step: p.Step}
	for _, v := range p.Values {
		r.Values = append(r.Values, child.Value{Tag: v.Tag, Value: v.Value})
	}
	return r
}
