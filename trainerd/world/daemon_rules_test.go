//go:build unix

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/daemon"
)

// judgeExit judges the exit code and the last words of a run by doc/exit-codes.md.
func (l *daemonLife) judgeExit(err error) error {
	var broken *rule
	code := daemon.ExitCode(err)
	switch {
	case errors.As(err, &broken):
		return err
	case l.fault.Kill && l.fs.Failed() != "":
		return nil // there is nobody whose code it would be
	case err != nil && l.fs.Failed() == "":
		return broke("the run ends with exit code %d without a reason: %w", code, err)
	case err != nil && l.event.is("disk-error-at-stop") && l.stopped:
		return broke("one operation of the disk failed at a stop, and the run ends with exit code %d: %w", code, err)
	case err != nil && code != daemon.ExitIO:
		return broke("a disk that fails ends the run with exit code %d, want %d: %w", code, daemon.ExitIO, err)
	case err != nil:
		return nil
	case bytes.Contains(l.out.Bytes(), []byte("next:\n")):
		return l.judgeComplete()
	case !l.stopped:
		return broke("the run ends with exit code 0 without being complete or stopped; it says %q and %q", &l.out, &l.err)
	}
	return l.judgeStop()
}

// judgeComplete wants the step of the undisturbed training.
func (l *daemonLife) judgeComplete() error {
	if l.step != 0 && l.step != l.trace.last {
		return broke("the job is complete at step %d, the undisturbed one at %d", l.step, l.trace.last)
	}
	return nil
}

// judgeStop wants what a stopped run says to be true.
func (l *daemonLife) judgeStop() error {
	text := l.err.String()
	if !strings.HasSuffix(text, "to resume, type: again\n") {
		return broke("a stopped run does not say how to resume: %q", text)
	}
	// A stop at the very end of a step may come before the step is counted; then the
	// last save counts it.
	at, before := fmt.Sprintf("stopped at step %d ", l.step), fmt.Sprintf("stopped at step %d ", l.step-1)
	saved := strings.Contains(text, ", and saved")
	if !strings.Contains(text, at) && (saved || !strings.Contains(text, before)) && l.step > 0 {
		return broke("a run that was stopped at step %d says %q", l.step, text)
	}
	if (l.fs.Failed() == "" || l.event.is("disk-error-at-stop")) && l.step > 0 && !saved {
		return broke("a stopped run on a disk that works has not saved: %q", text)
	}
	return nil
}

// judgeNewest wants the bits of the undisturbed training in the newest checkpoint
// and in the best.
func (h *daemonHistory) judgeNewest(ctx context.Context) error {
	if h.announced < 0 || h.keys["supervisor.write_version"] != "" {
		return nil
	}
	newest, _, err := ckptdir.NewestIntact(ctx, h.dir)
	if err != nil {
		return err
	}
	return h.judgeBundle(newest)
}

// judgeBundle wants the bits of the undisturbed training in a checkpoint.
func (h *daemonHistory) judgeBundle(c ckptdir.Checkpoint) error {
	b, err := ckptfmt.OpenBundle(c.Prefix, nil)
	if err != nil {
		return broke("%s: %w", c.Prefix, err)
	}
	defer b.Close()
	values := map[string]*ckptfmt.Tensor{}
	for info, err := range b.Tensors() {
		if err != nil {
			return broke("%s: %w", c.Prefix, err)
		}
		if values[info.Name], err = b.Lookup(info.Name); err != nil {
			return broke("%s: %w", c.Prefix, err)
		}
	}
	got, err := digestOf(values, h.plan.kind.ownInput)
	if want := h.trace.digests[c.Step]; err == nil && got != want && c.Step > 0 {
		err = broke("%s: the values differ from those of the undisturbed training", c.Prefix)
	}
	return err
}

// stepOfSaved also knows the step of a checkpoint that a crash has left under its
// second name, while another was published under its first.
func stepOfSaved(c ckptdir.Checkpoint) int64 {
	original, previous := strings.CutSuffix(c.Prefix, ".previous")
	if !previous {
		return c.Step
	}
	step, err := strconv.ParseInt(original[strings.LastIndexByte(original, '-')+1:], 10, 64)
	if err != nil {
		return -1
	}
	return step
}

// judgeEnd judges the logdir of a job that is complete.
func (h *daemonHistory) judgeEnd(ctx context.Context) error {
	if err := noTemps(h.dir); err != nil && h.stepped { // the logdir of a complete job is left as it is
		return err
	}
	newest, _, err := ckptdir.NewestIntact(ctx, h.dir)
	if err != nil {
		return broke("the job is complete: %w", err)
	}
	if step := stepOfSaved(newest); step != h.trace.last {
		return broke("the job is complete at step %d; its newest intact checkpoint is of step %d", h.trace.last, step)
	}
	exact, err := curvesOf(h.dir, tfevents.PurgeExact)
	if err == nil {
		err = h.judgeCurves(exact)
	}
	if err != nil {
		return err
	}
	if err := judgeLoaders(h.dir, exact, h.lossy); err != nil {
		return err
	}
	return h.judgeBest()
}

// isTimed tells the curves of speeds and of how full queues are, whose points come by the clock.
func isTimed(curve string) bool {
	return strings.HasPrefix(curve, "global_step/") || strings.Contains(curve, "/fraction_of_")
}

// judgeCurves wants the points of the undisturbed training, at the steps that the
// config says.
func (h *daemonHistory) judgeCurves(curves map[string]map[int64]float64) error {
	for _, name := range slices.Sorted(maps.Keys(h.trace.curves)) {
		want := h.trace.curves[name]
		if isTimed(name) {
			continue
		}
		steps := maps.Clone(curves[name])
		for _, step := range h.dueSteps(strings.HasPrefix(name, "eval/")) {
			if _, ok := steps[step]; !ok && !h.lossy && step > h.from {
				return broke("%s has no point of step %d", name, step)
			}
			delete(steps, step)
		}
		if h.keys["train.early_stopping"] != "" {
			delete(steps, h.trace.last)
		}
		if h.exact(strings.HasPrefix(name, "eval/")) && len(steps) > 0 {
			return broke("%s has points of the steps %v, which are not due", name, slices.Sorted(maps.Keys(steps)))
		}
		for step, value := range curves[name] {
			if w, ok := want[step]; !ok || w != value {
				return broke("%s has %v at step %d, the undisturbed training %v", name, value, step, w)
			}
		}
	}
	return nil
}

// exact reports whether all points come by steps.
func (h *daemonHistory) exact(eval bool) bool {
	if eval {
		return !h.changedEval && h.keys["eval.secs"] == ""
	}
	return !h.changedSummaries && h.keys["supervisor.save_summaries_steps"] != ""
}

// dueSteps returns the steps at which there is a point whatever the clock says.
func (h *daemonHistory) dueSteps(eval bool) (steps []int64) {
	every, last := int64(0), h.trace.last
	if eval {
		every = h.evalSteps()
		if h.changedEval {
			every = 0
		}
	} else {
		every, _ = strconv.ParseInt(h.keys["supervisor.save_summaries_steps"], 10, 64)
		switch {
		case h.changedSummaries:
			return nil
		case every == 0 && h.keys["supervisor.save_summaries_secs"] == "0":
			return nil
		}
		steps = append(steps, 1)
	}
	for step := every; every > 0 && step < last; step += every {
		steps = append(steps, step)
	}
	if eval || h.keys["train.early_stopping"] == "" { // else that the step is the last is not known before it is made
		steps = append(steps, last)
	}
	return slices.Compact(steps)
}

// evalSteps returns eval.steps, 0 for none.
func (h *daemonHistory) evalSteps() int64 {
	text := h.keys["eval.steps"]
	if text == "" {
		text = h.keys["train.eval_steps"]
	}
	every, _ := strconv.ParseInt(text, 10, 64)
	return every
}

// judgeBest wants the best checkpoints to be those of the best evaluations.
func (h *daemonHistory) judgeBest() error {
	keep, _ := strconv.Atoi(h.keys["eval.keep_best"])
	if keep == 0 || !h.plan.evaluates() {
		return nil
	}
	kept, err := ckptdir.List(filepath.Join(h.dir, "best"))
	after := func(step int64) bool { return step > h.from }
	if errors.Is(err, fs.ErrNotExist) && (h.lossy || h.from > 0 && !slices.ContainsFunc(h.dueSteps(true), after)) {
		return nil // the disk never took any, or the logdir was removed after the last evaluation
	}
	if err != nil {
		return broke("eval.keep_best = %d: %w", keep, err)
	}
	var got []int64
	for _, c := range kept {
		if err := h.judgeBundle(c); err != nil {
			return err
		}
		got = append(got, c.Step)
	}
	slices.Sort(got)
	if want := h.bestSteps(keep); h.exact(true) && !h.lossy && h.from == 0 && !slices.Equal(got, want) {
		return broke("the best checkpoints are those of the steps %v, want %v", got, want)
	}
	return nil
}

// bestSteps returns the steps of the best evaluations, in order.
func (h *daemonHistory) bestSteps(keep int) []int64 {
	metric, less := "accuracy", false
	if values := h.trace.curves["eval/accuracy"]; values == nil || h.keys["eval.metric"] != "" {
		metric, less = "loss", h.keys["eval.mode"] != `"max"`
	}
	values := h.trace.curves["eval/"+metric]
	steps := h.dueSteps(true)
	slices.SortStableFunc(steps, func(a, b int64) int {
		switch x, y := values[a], values[b]; {
		case x == y:
			return int(a - b)
		case x < y == less:
			return -1
		}
		return 1
	})
	best := steps[:min(keep, len(steps))]
	slices.Sort(best)
	return best
}
