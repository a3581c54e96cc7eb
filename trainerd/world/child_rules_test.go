//go:build unix

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child"
	"github.com/trainerd/trainerd/trainerd/child/found"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/logdir"
)

// noteAnnounced reads the log of a trainerd for what it announces.
func (n *childNode) noteAnnounced(ctx context.Context, r slog.Record) error {
	attrs := attrsOf(r)
	n.line(r, attrs)
	if !n.isDead() {
		switch {
		case r.Message == "logdir is lost":
			n.set(func() { n.lost = true })
		case strings.HasPrefix(r.Message, "logdir was deleted"):
			n.set(func() { n.homeless = false })
		case strings.HasPrefix(r.Message, "a node has not ended the program in time"):
			n.note(n.judgeWait(int(attrs["node"].Int64())))
		case r.Message == "saved":
			if step, known := n.stepOfSaved(attrs); known {
				n.promise(step)
			}
		case strings.HasPrefix(r.Message, "loss is NaN; rewinding"):
			n.takeBack(filepath.Join(n.dir, filepath.Dir(n.plan.way.pattern), attrs["to"].String())) // "to" is the base name
		case r.Message == "cannot rewind to an earlier checkpoint": // a part of it may be done
			n.takeBack(attrs["checkpoint"].String())
		case strings.Contains(r.Message, "rewinding to the previous one"):
			n.note(n.judgeDistrust())
			n.takeBack(attrs["older"].String())
		case strings.Contains(r.Message, "moved it aside"):
			n.note(n.judgeDistrust())
			if attrs["next"].String() != "the beginning" {
				n.takeBack(attrs["next"].String())
			}
		}
	}
	if n.story == nil {
		return nil
	}
	if r = r.Clone(); n.plan.nodes > 1 {
		r.AddAttrs(slog.Int("node", n.node))
	}
	return n.story.Handle(ctx, r)
}

// set changes what mu guards.
func (l *childLife) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// stepOfSaved returns the step of a checkpoint that was announced. Of one without a
// number in its name there is a copy. It is not known of one that is there in part.
func (l *childLife) stepOfSaved(attrs map[string]slog.Value) (step int64, known bool) {
	if l.plan.way.counted {
		step, err := stepInFile(attrs["checkpoint"].String())
		if err != nil && !(l.plan.parts && l.mayBePart()) {
			l.note(broke("it has saved %s: %w", attrs["checkpoint"], err))
		}
		return step % poison, err == nil
	}
	if logged := attrs["step"]; logged.Kind() == slog.KindInt64 {
		return logged.Int64(), true
	}
	newest := l.promised
	copies, _ := filepath.Glob(filepath.Join(l.dir, "trainerd.copies", "*", l.plan.way.pattern))
	for _, name := range copies {
		if step, err := stepInFile(name); err == nil {
			newest = max(newest, step)
		}
	}
	return newest, true
}

func (l *childLife) promise(step int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.homeless {
		return // it is gone
	}
	l.promised = max(l.promised, step)
	l.childHistory.kept[step] = true
	l.fs.Mark(l.promised + 1) // 0 is for none
}

// takeBack lowers the promise: the program goes back to a checkpoint on purpose.
func (l *childLife) takeBack(name string) {
	step, err := stepInFile(name)
	if err != nil {
		l.note(broke("it goes back to %s: %w", name, err))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rewound = true
	l.promised, l.announced = min(l.promised, step), min(l.announced, step)
	l.forget(step)
	l.fs.Mark(l.promised + 1)
}

// judgeBegin judges the step at which the program begins.
func (p *program) judgeBegin(step int64) error {
	if err := p.crew.begins(p.node, step); err != nil {
		return err
	}
	l := p.childLife
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.gaps {
		if l.gaps[i].to < 0 {
			l.gaps[i].to = step
		}
	}
	l.reported.Store(step)
	if floor := p.crew.floor(l.promised); step < floor {
		return broke("a start of the program begins at step %d; %d was announced as saved", step, floor)
	}
	return nil
}

// judgeArgs wants the arguments that resume_args say.
func (p *program) judgeArgs(given string) error {
	want := []string{"--train"}
	if p.keys["child.resume_args"] != "" && given != "" {
		step := "0"
		if s := p.env["TRAINERD_STEP"]; s != "" {
			step = s
		}
		want = append(want, "--resume", given, "--step="+step)
	}
	if !slices.Equal(p.args, want) {
		return broke("the program has the arguments %q, want %q", p.args, want)
	}
	return nil
}

// judgeExit judges the exit code and the last words of a trainerd by doc/exit-codes.md.
// The caller holds mu.
func (n *childNode) judgeExit(err error) error {
	var lost *child.SaveLostError
	var exit *child.ExitError
	var nan *trainerd.NaNError
	var chief *child.ChiefError
	var logdirLost *logdir.LostError
	switch {
	case n.isDead():
		return nil // there is nobody whose code it would be
	case errors.As(err, &lost):
		return n.judgeLost(lost)
	case errors.As(err, &chief):
		return n.judgeFollower(chief)
	case errors.As(err, &logdirLost) && n.event.is("logdir-removed"):
		return nil
	case errors.As(err, &exit) && n.event == fullForHours && n.announced > 0 && n.plan.nodes == 1:
		return broke("a full disk has ended the run: %w", err)
	case errors.As(err, &exit) && n.mayFail(), errors.As(err, &nan) && n.nan:
		return nil
	case err != nil && (n.fs.Failed() == "" || daemon.ExitCode(err) != daemon.ExitIO):
		return broke("the run ends with exit code %d without a reason: %w", daemon.ExitCode(err), err)
	case err != nil:
		return nil
	case bytes.Contains(n.out.Bytes(), []byte("job is complete: the program has succeeded")):
		if !n.completed.Load() && (!n.wasStopped() || n.plan.manners == rude) {
			return broke("the job is said to be complete, and the program is not")
		}
		return nil
	case !n.wasStopped():
		return broke("the run ends with exit code 0 without being complete or stopped; it says %q and %q", &n.out, &n.err)
	case !strings.HasSuffix(n.err.String(), "to resume, type: again\n"):
		return broke("a stopped run does not say how to resume: %q", &n.err)
	case !n.led && n.plan.nodes > 1:
		return nil
	case n.plan.way != nil && n.plan.way.hasSteps() && n.savedThen < n.reachedThen-1-n.plan.trainsOn()-n.plan.unsure():
		return broke("the run was stopped at step %d, the newest checkpoint is of step %d, and its exit code is 0", n.reachedThen, n.savedThen)
	}
	return nil
}

// mayFail reports whether the program may fail for a reason, perhaps permanently: one
// that has lost a part of it does.
func (n *childNode) mayFail() bool {
	return n.event.fails || n.fs.Failed() != "" || n.plan.nodes > 1 && (n.deaths > 0 || n.keys["child.hang_secs"] != "" && n.happened)
}

// wasStopped reports whether somebody asked a trainerd to stop, or the chief that it
// follows.
func (n *childNode) wasStopped() bool {
	return n.stopped || !n.led && slices.ContainsFunc(n.nodes, func(c *childNode) bool { return c.led && c.stopped })
}

// judgeLost wants a lost save to be one.
func (n *childNode) judgeLost(e *child.SaveLostError) error {
	if !n.stopped {
		return broke("nobody has stopped it: %w", e)
	}
	if n.plan.way != nil && n.fs.Failed() == "" && e.Step >= 0 && n.savedThen >= e.Step {
		return broke("the program had saved step %d: %w", n.savedThen, e)
	}
	return nil
}

// judgeLogdir judges what a life has left.
func (h *childHistory) judgeLogdir(context.Context) error {
	if h.announced <= 0 || h.plan.way == nil || !h.plan.way.hasSteps() {
		return nil // the next start of the program shows
	}
	all, err := found.Scan(h.dir, h.plan.way.pattern)
	if err != nil || len(all) == 0 {
		return broke("step %d was announced, and there is no intact checkpoint: %v", h.announced, err)
	}
	if newest := h.stepOf(all[len(all)-1]); newest < h.announced {
		return broke("step %d was announced, and the newest intact checkpoint is of step %d", h.announced, newest)
	}
	return nil
}

// stepOf returns the step of a checkpoint that has a number in its name.
func (h *childHistory) stepOf(c child.Checkpoint) int64 {
	if !h.plan.way.counted {
		return c.Step
	}
	step, _ := stepInFile(c.Path) // of one that is there
	return step % poison
}

// judgeEnd judges the logdir of a program that has completed its job.
func (h *childHistory) judgeEnd() error {
	if err := noTemps(h.dir); err != nil {
		return err
	}
	if left, err := filepath.Glob(filepath.Join(h.dir, "trainerd.nodes", "*.reports*")); err != nil || len(left) > 0 {
		return broke("reports that nodes have passed on are left: %v, %v", left, err)
	}
	if err := h.judgeCheckpoints(); err != nil {
		return err
	}
	for name, purge := range map[string]tfevents.Purge{"exact": tfevents.PurgeExact, "TensorBoard's loader": tfevents.PurgePython} {
		curves, err := curvesOf(h.dir, purge)
		if err == nil {
			err = h.judgeCurve(curves["loss"])
		}
		if err != nil {
			return fmt.Errorf("the curve as %s has it: %w", name, err)
		}
	}
	return nil
}

// judgeCheckpoints judges which ones are there: the last, the best, and no more than
// there should be.
func (h *childHistory) judgeCheckpoints() error {
	if h.plan.way == nil {
		return nil
	}
	all, err := found.Scan(h.dir, h.plan.way.pattern)
	if err != nil || len(all) == 0 {
		return broke("the program has ended, and there is no intact checkpoint: %v", err)
	}
	steps := make([]int64, len(all))
	for i, c := range all {
		if steps[i], err = h.plan.way.load(c.Path, h.dir); err != nil {
			return broke("%s: %w", c.Path, err)
		}
	}
	last := slices.Max(steps)
	if last != h.plan.steps {
		return broke("the program has ended at step %d, and its newest intact checkpoint is of step %d", h.plan.steps, last)
	}
	most, err := strconv.Atoi(h.keys["supervisor.max_to_keep"])
	if err != nil {
		most = 5
	}
	if most == 0 || !h.plan.way.hasSteps() || h.plan.way.turns > 0 {
		return nil
	}
	for _, key := range []string{"child.keep_best", "supervisor.keep_steps", "supervisor.keep_checkpoint_every_n_hours"} {
		most += 1000 * len(h.keys[key])
	}
	if h.plan.way.counted && h.keys["child.max_rewinds"] != "" {
		most++ // no loss has come after the last one, so one after which some has stays
	}
	if h.plan.second != noSecondName && h.plan.second != hardName && h.plan.second != copyName && h.namesOlder(last) {
		most++ // it was killed before it had named the newest
	}
	if len(steps) > most+h.pins && !h.lossy {
		return broke("steps %v are kept; max_to_keep is %d", steps, most)
	}
	return h.judgeBest(steps)
}

// judgeBest wants the best of all that were announced, or one that is as good.
func (h *childHistory) judgeBest(have []int64) error {
	if n := h.keys["child.keep_best"]; n == "" || n == "0" || h.lossy || h.plan.way.counted { // what is reported before a look is not known
		return nil
	}
	best, at := math.Inf(1), []int64(nil)
	for step := range h.kept {
		v, measured := h.measured(step)
		if !measured || v > best {
			continue
		}
		if v < best {
			best, at = v, nil
		}
		at = append(at, step)
	}
	asGood := func(step int64) bool { // one may be better that was announced to nobody, as trainerd died
		v, measured := h.measured(step)
		return measured && v <= best
	}
	if len(at) > 0 && !slices.ContainsFunc(have, asGood) {
		return broke("the checkpoints of steps %v are the best, and were removed; there are %v", at, have)
	}
	return nil
}

// measured returns the metric that a checkpoint has, the smaller the better.
func (h *childHistory) measured(step int64) (v float64, measured bool) {
	v, measured = valueAt(step)
	if !measured && step > 1 { // a program may count a step that it has reported as the next one
		v, measured = valueAt(step - 1)
	}
	if h.keys["child.mode"] == `"max"` {
		v = -v
	}
	return v, measured
}

// judgeCurve wants each point once, but for those that a death of trainerd may have
// cost, and a failing disk.
func (h *childHistory) judgeCurve(points map[int64]float64) error {
	for step, v := range points {
		if step < 1 || step > h.plan.steps || float32(v) != float32(lossAt(step)) {
			return broke("the point of step %d is %v", step, v)
		}
	}
	for step := int64(1); step <= h.plan.steps && !h.lossy && !h.plan.silent; step++ {
		if _, ok := points[step]; !ok && !slices.ContainsFunc(h.gaps, func(g gap) bool { return step > g.from && (step <= g.to || g.to < 0) }) {
			return broke("the point of step %d is missing", step)
		}
	}
	return nil
}
