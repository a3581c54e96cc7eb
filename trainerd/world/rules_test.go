//go:build unix

package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/internal/atomicfile"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A rule is one that was broken.
type rule struct{ err error }

func (r *rule) Error() string { return "RULE BROKEN: " + r.err.Error() }
func (r *rule) Unwrap() error { return r.err }

func broke(format string, args ...any) error { return &rule{fmt.Errorf(format, args...)} }

// judgeStart judges what a session begins with, and returns its step.
func (l *living) judgeStart(ctx context.Context, s session.Session) (int64, error) {
	step, err := session.ReadStep(ctx, s, session.DefaultGlobalStep)
	if err != nil {
		return 0, broke("a session without a step: %w", err)
	}
	if step < l.announced {
		return 0, broke("a life begins at step %d; %d was announced as saved", step, l.announced)
	}
	return step, l.judgeWeights(ctx, s, step)
}

// judgeWeights wants the weights of the undisturbed training.
func (l *living) judgeWeights(ctx context.Context, s session.Session, step int64) error {
	got, err := l.job.digest(ctx, s)
	if err != nil {
		return err
	}
	want, _, err := l.plan.job.at(ctx, step)
	if err != nil {
		return err
	}
	if got != want {
		return broke("at step %d the weights differ from those of the undisturbed training", step)
	}
	return nil
}

// judgeEnd judges the logdir of a training that is complete.
func (h *history) judgeEnd(ctx context.Context) error {
	if err := noTemps(h.dir); err != nil {
		return err
	}
	newest, _, err := ckptdir.NewestIntact(ctx, h.dir)
	if err != nil {
		return broke("the training ended at step %d: %w", h.plan.steps, err)
	}
	if newest.Step != h.plan.steps {
		return broke("the training ended at step %d; its newest intact checkpoint is of step %d", h.plan.steps, newest.Step)
	}
	for name, purge := range map[string]tfevents.Purge{"exact": tfevents.PurgeExact, "TensorBoard's loader": tfevents.PurgePython} {
		if err := h.judgeCurve(ctx, purge); err != nil {
			return fmt.Errorf("the curve as %s has it: %w", name, err)
		}
	}
	return nil
}

// judgeCurve wants each point of the undisturbed training, once.
func (h *history) judgeCurve(ctx context.Context, purge tfevents.Purge) error {
	fsys := os.DirFS(h.dir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		return err
	}
	if len(runs) != 1 {
		return broke("the logdir has %d runs", len(runs))
	}
	data := tfevents.ReadRun(fsys, runs[0], &tfevents.RunOptions{Purge: purge})
	series := data.Lookup("loss")
	if series == nil {
		return broke("there is none")
	}
	_, want, err := h.plan.job.at(ctx, h.plan.steps)
	if err != nil {
		return err
	}
	last, n := int64(0), 0
	for p := range series.Points() {
		got, ok := p.Scalar()
		switch {
		case p.Step <= last:
			return broke("a point of step %d comes after one of step %d", p.Step, last)
		case !ok || p.Step > h.plan.steps || float32(got) != float32(want[p.Step-1]):
			return broke("the point of step %d is %v", p.Step, got)
		case p.Step != last+1 && !h.lossy:
			return broke("after the point of step %d comes that of step %d", last, p.Step)
		}
		last = p.Step
		n++
	}
	if int64(n) != h.plan.steps && !h.lossy {
		return broke("%d points of %d steps", n, h.plan.steps)
	}
	return nil
}

// noTemps wants no temporary file below a folder.
func noTemps(dir string) error {
	return filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && atomicfile.IsTemp(d.Name()) {
			err = broke("temporary file %s is left", name)
		}
		return err
	})
}
