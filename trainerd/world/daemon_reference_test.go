//go:build unix

package world

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/trainerd/daemon"
	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/runtime"
	"github.com/trainerd/trainerd/trainerd/session"
)

// A trace is what the undisturbed training of a job has.
type trace struct {
	digests map[int64]digest             // after each step, and before the first
	last    int64                        // step
	curves  map[string]map[int64]float64 // by run and tag, as eval/loss
}

// warmDir is where jobs with a warm start find a checkpoint, in their folder.
const warmDir = "warm"

// reference trains the job twice without a disturbance: with the keys that decide what
// is trained alone, and so that it evaluates, saves and writes summaries all the time.
// The two must not differ in a bit.
func (p *daemonPlan) reference(ctx context.Context, dir string) (*trace, error) {
	keys := p.keys(false)
	if keys["warm_start.from"] != "" {
		if err := p.trainWarm(ctx, dir, keys); err != nil {
			return nil, err
		}
	}
	bare, err := p.trace(ctx, dir, "bare", keys)
	if err != nil {
		return nil, fmt.Errorf("undisturbed: %w", err)
	}
	keys["supervisor.save_summaries_steps"], keys["supervisor.save_model_steps"] = "1", "7"
	if p.evaluates() && keys["eval.steps"] == "" {
		keys["eval.steps"] = "1"
	}
	rich, err := p.trace(ctx, dir, "rich", keys)
	if err != nil {
		return nil, fmt.Errorf("undisturbed, with all evaluations: %w", err)
	}
	if !maps.Equal(bare.digests, rich.digests) {
		return nil, broke("evaluations, saves or summaries have changed the weights")
	}
	return rich, nil
}

// trainWarm makes the checkpoint of a warm start.
func (p *daemonPlan) trainWarm(ctx context.Context, dir string, keys map[string]string) error {
	cold := maps.Clone(keys)
	for _, key := range []string{"from", "missing", "include", "exclude", "reshape"} {
		delete(cold, "warm_start."+key)
	}
	delete(cold, "train.epochs")
	delete(cold, "train.early_stopping")
	cold["model.seed"], cold["train.steps"] = "4711", "4"
	_, err := p.trace(ctx, dir, warmDir, cold)
	return err
}

// trace runs a job from its first step to its last.
func (p *daemonPlan) trace(ctx context.Context, dir, logdir string, keys map[string]string) (*trace, error) {
	logdir = filepath.Join(dir, logdir)
	file := logdir + ".toml"
	if err := os.WriteFile(file, []byte(tomlOf(keys, logdir)), 0o666); err != nil {
		return nil, err
	}
	c, err := config.Load(file, nil)
	if err != nil {
		return nil, broke("a config that should be valid is not: %w", err)
	}
	t := &trace{digests: map[int64]digest{}}
	note := func(ctx context.Context, w *watched, step int64) (err error) {
		t.digests[step], err = w.digest(ctx)
		t.last = step
		return err
	}
	wrap := func(s session.Session) session.Session {
		w := &watched{Session: s.(*runtime.Session), loose: p.kind.ownInput, after: note}
		w.before = func(step int64) error {
			if t.digests[step] == (digest{}) {
				return note(ctx, w, step)
			}
			return nil
		}
		return w
	}
	if err := daemon.Run(ctx, c, daemon.RunOptions{Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler), Wrap: wrap}); err != nil {
		return nil, err
	}
	if t.last == 0 {
		return nil, broke("no step was seen")
	}
	t.curves, err = curvesOf(logdir, tfevents.PurgeExact)
	return t, err
}

// judgeLoaders wants both loaders of TensorBoard to show the curves of a logdir. A sync that
// failed may have cost points after a START that hides the same ones in files before it: these
// the Python loader may lack in a history that is lossy. The data server drops points only for
// a newer one of their curve, which a life too short for one by the clock has not.
func judgeLoaders(logdir string, want map[string]map[int64]float64, lossy bool) error {
	for name, purge := range map[string]tfevents.Purge{"TensorBoard's loader": tfevents.PurgePython, "TensorBoard's data server": tfevents.PurgeDataServer} {
		got, err := curvesOf(logdir, purge)
		if err != nil {
			return fmt.Errorf("the curves as %s has them: %w", name, err)
		}
		for _, curve := range slices.Sorted(maps.Keys(want)) {
			if lossy && purge == tfevents.PurgePython && isPartOf(got[curve], want[curve]) {
				continue
			}
			if !maps.Equal(got[curve], want[curve]) {
				return broke("%s has other points of %s than those of the events files that count: %v; want %v", name, curve, got[curve], want[curve])
			}
		}
		if purge == tfevents.PurgeDataServer {
			maps.DeleteFunc(got, func(curve string, _ map[int64]float64) bool { return want[curve] == nil && isTimed(curve) })
		}
		if len(got) > len(want) {
			return broke("%s has %d curves; want %d", name, len(got), len(want))
		}
	}
	return nil
}

// isPartOf reports whether a curve has no point that the other one lacks.
func isPartOf(curve, of map[int64]float64) bool {
	for step, value := range curve {
		if v, ok := of[step]; !ok || v != value {
			return false
		}
	}
	return true
}

// curvesOf reads the curves of a logdir, which must rise.
func curvesOf(logdir string, purge tfevents.Purge) (map[string]map[int64]float64, error) {
	fsys := os.DirFS(logdir)
	runs, err := tfevents.FindRuns(fsys, ".")
	if err != nil {
		return nil, err
	}
	curves := map[string]map[int64]float64{}
	for _, run := range runs {
		data := tfevents.ReadRun(fsys, run, &tfevents.RunOptions{Purge: purge})
		for _, series := range data.Series {
			points, last := map[int64]float64{}, int64(-1)
			for point := range series.Points() {
				value, ok := point.Scalar()
				if !ok {
					continue
				}
				if point.Step <= last {
					return nil, broke("%s of run %s: a point of step %d comes after one of step %d", series.Tag, run.Name, point.Step, last)
				}
				points[point.Step], last = value, point.Step
			}
			if len(points) > 0 {
				curves[path.Join(run.Name, series.Tag)] = points
			}
		}
	}
	return curves, nil
}
