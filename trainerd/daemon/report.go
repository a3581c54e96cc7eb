package daemon

import (
	"context"
	"fmt"

	"github.com/trainerd/trainerd/internal/shell"
	"github.com/trainerd/trainerd/trainerd/control"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// reportComplete answers a run of a job that has nothing left to do.
func (j *job) reportComplete(ctx context.Context, s *resumePoint, o RunOptions) error {
	// The checkpoint may be of a run that continues, to a later step.
	if err := logdir.Check(j.config.Logdir); err != nil {
		return err
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
	if e != nil {
		for i, name := range e.names {
			if _, has := e.value("accuracy"); !has || name != "loss" {
				fmt.Fprintf(o.Stdout, "test %s: %.3f\n", name, e.values[i])
			}
		}
	}
	logdir := shell.Quote(config.Absolute(j.config.Logdir))
	fmt.Fprintf(o.Stdout, "next:\n  %s tensorboard %s\n  %s ls %s\n", o.command("trainerd"), logdir, o.command("ckpt"), logdir)
}

// command returns how a command of ours is called.
func (o RunOptions) command(name string) string {
	if o.Command == nil {
		return name
	}
	return shell.Quote(o.Command(name))
}

// reportEnd says how a run came to its end.
func (t *training) reportEnd(o RunOptions) {
	o.Monitor.Enter(control.Ended)
	if !t.ended && (t.job.steps == 0 || t.step < t.job.steps) {
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
	at := fmt.Sprintf("stopped at step %d", t.step)
	if t.job.steps > 0 {
		at += fmt.Sprintf(" of %d", t.job.steps)
	}
	switch {
	case ok && saved.Step >= t.step: // other workers may have made more steps
		fmt.Fprintf(o.Stderr, "%s, and saved\n", at)
	case ok:
		fmt.Fprintf(o.Stderr, "%s; the newest checkpoint is of step %d\n", at, saved.Step)
	default:
		fmt.Fprintln(o.Stderr, at)
	}
	if o.Again != "" {
		fmt.Fprintf(o.Stderr, "to resume, type: %s\n", o.Again)
	}
}

// sayAgain says how to continue a stopped job.
func (o RunOptions) sayAgain() {
	if o.Again != "" {
		fmt.Fprintf(o.Stderr, "to resume, type: %s\n", o.Again)
	}
}
