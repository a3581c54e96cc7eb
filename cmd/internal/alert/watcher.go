package alert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/internal/parallel"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// Watcher evaluates rules on the runs of a log directory. Its fields are set before
// the first call of Watch or Once.
type Watcher struct {
	FS      fs.FS // the log directory
	Logdir  string
	Rules   []*Rule
	Actions []Action
	State   *State
	Run     *regexp.Regexp // nil: all
	Poll    time.Duration
	// SkipExisting takes what holds when a watch without a state begins as reported.
	SkipExisting bool
	// Found is called with each alert, once, before the actions.
	Found  func(*Alert)
	Logger *slog.Logger // nil discards

	runs    map[string]*watched
	pending []*delivery
	missing bool // that there is no log directory was logged
}

// watched is a run.
type watched struct {
	name    string
	data    *tfevents.RunData
	files   []string
	changed bool
}

// delivery is an alert whose actions have not all succeeded.
type delivery struct {
	alert   *Alert
	todo    []Action
	next    time.Time
	attempt int
}

// attempts is how often actions are tried before they are given up.
const attempts = 6

// Watch looks every Poll until ctx ends, whose error it returns.
func (w *Watcher) Watch(ctx context.Context) error {
	ticker := time.NewTicker(w.Poll)
	defer ticker.Stop()
	for {
		if _, err := w.Once(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Once looks once, and returns what it has found. Deliveries that failed are repeated
// with the next calls, after longer and longer pauses.
func (w *Watcher) Once(ctx context.Context) ([]*Alert, error) {
	if w.Logger == nil {
		w.Logger = slog.New(slog.DiscardHandler)
	}
	if err := w.read(ctx); err != nil {
		return nil, err
	}
	alerts := w.evaluate(time.Now())
	if w.State.new {
		w.State.new = false
		if w.SkipExisting {
			for _, a := range alerts {
				w.State.add(a.fired(time.Now(), "held before the watch began"))
			}
			alerts = nil
		}
		if err := w.State.save(); err != nil {
			return nil, err
		}
	}
	for _, a := range alerts {
		if w.Found != nil {
			w.Found(a)
		}
		w.pending = append(w.pending, &delivery{alert: a, todo: slices.Clone(w.Actions)})
	}
	return alerts, w.deliver(ctx)
}

// read brings all runs up to date.
func (w *Watcher) read(ctx context.Context) error {
	found, err := tfevents.FindRuns(w.FS, ".")
	if err != nil {
		if !w.missing {
			w.Logger.Warn("reading the log directory", "error", err)
		}
		w.missing = true
	} else {
		w.missing = false
	}
	now := make(map[string]*watched, len(found))
	list := make([]*watched, 0, len(found))
	for _, f := range found {
		if w.Run != nil && !w.Run.MatchString(f.Name) {
			continue
		}
		r := w.runs[f.Name]
		if r == nil {
			r = &watched{name: f.Name}
		}
		r.files = f.Files
		now[f.Name] = r
		list = append(list, r)
	}
	w.runs = now
	parallel.Each(ctx, len(list), func(i int) { list[i].update(w.FS) })
	return ctx.Err()
}

// maxRecord lets whatever a writer has managed to write be read.
const maxRecord = math.MaxInt32

func (r *watched) update(fsys fs.FS) {
	if r.data != nil {
		changed, ok := r.data.Update(r.files)
		if ok {
			r.changed = r.changed || changed
			return
		}
	}
	r.data = tfevents.ReadRun(fsys, tfevents.Run{Name: r.name, Files: r.files}, &tfevents.RunOptions{MaxSize: maxRecord})
	r.changed = true
}

// evaluate returns what holds and was not reported.
func (w *Watcher) evaluate(now time.Time) (alerts []*Alert) {
	for _, name := range slices.Sorted(maps.Keys(w.runs)) {
		r := w.runs[name]
		if r.data == nil || r.data.Events == 0 {
			continue
		}
		for _, rule := range w.Rules {
			mark := fired{Rule: rule.Text, Run: name, Began: r.data.Began}
			if w.State.has(mark) || w.isPending(mark) || rule.silent == 0 && !r.changed {
				continue
			}
			if a := w.apply(rule, r.data, now); a != nil {
				alerts = append(alerts, a)
			}
		}
		r.changed = false
	}
	return alerts
}

func (w *Watcher) isPending(mark fired) bool {
	return slices.ContainsFunc(w.pending, func(d *delivery) bool { return d.alert.fired(time.Time{}, "").same(mark) })
}

// apply returns the alert if the rule holds for the run.
func (w *Watcher) apply(rule *Rule, d *tfevents.RunData, now time.Time) *Alert {
	a := &Alert{Rule: rule.Text, Logdir: w.State.data.Logdir, Run: d.Name, Time: now.UTC(), began: d.Began}
	if rule.silent > 0 {
		return w.applySilence(rule, d, a, now)
	}
	for _, s := range d.Series {
		if s.Plugin() != summary.PluginScalars || !rule.tags(s.Tag) {
			continue
		}
		p, ok := rule.points.find(samples(d, s))
		if !ok {
			continue
		}
		value := Number(p.Value)
		a.Tag, a.Step, a.Value, a.WallTime = s.Tag, &p.Step, &value, Number(p.WallTime)
		a.Text = fmt.Sprintf("%s: %s: %s is %v at step %d", where(w.Logdir, d.Name), rule.Text, terminal.Shown(s.Tag), value, p.Step)
		return a
	}
	return nil
}

// applySilence looks whether nothing has come for too long. A run that had ended, or
// was silent that long when the first watch began, is not expected to say more.
func (w *Watcher) applySilence(rule *Rule, d *tfevents.RunData, a *Alert, now time.Time) *Alert {
	last, tag := math.Inf(-1), ""
	for _, s := range d.Series {
		if rule.tags != nil && !rule.tags(s.Tag) {
			continue
		}
		if _, wall := s.Max(); wall > last {
			last, tag = wall, s.Tag
		}
	}
	since := tfevents.WallTime(w.State.data.Since) - rule.silent.Seconds()
	silent := tfevents.WallTime(now) - last
	if d.Stopped || math.IsInf(last, -1) || last < since || silent < rule.silent.Seconds() {
		return nil
	}
	what := "the run"
	if rule.tags != nil {
		a.Tag, what = tag, terminal.Shown(tag)
	}
	a.WallTime = Number(last)
	a.Text = fmt.Sprintf("%s: %s: nothing new of %s for %v", where(w.Logdir, d.Name), rule.Text, what,
		time.Duration(silent*float64(time.Second)).Round(time.Second))
	return a
}

// where names a run in the text of an alert, which is one line whatever the names are: a mail has it as its
// subject.
func where(logdir, run string) string {
	return terminal.Shown(filepath.ToSlash(filepath.Join(logdir, run)))
}

// samples walks the scalars of a series.
func samples(d *tfevents.RunData, s *tfevents.Series) iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		for p, x := range d.Scalars(s) {
			if !yield(Sample{p.Step, p.WallTime, x}) {
				return
			}
		}
	}
}

// actionGrace is how long an action that is under way may take when the watcher is
// stopped. One that is cut off is performed again by the next watcher.
const actionGrace = 5 * time.Second

// outlive returns a context that ends some time after ctx.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return longer, func() { stop(); cancel() }
}

// deliver performs the actions that are due.
func (w *Watcher) deliver(ctx context.Context) error {
	longer, cancel := outlive(ctx, actionGrace)
	defer cancel()
	var errs []error
	w.pending = slices.DeleteFunc(w.pending, func(d *delivery) bool {
		if time.Now().Before(d.next) || ctx.Err() != nil {
			return false
		}
		failed := d.try(longer)
		if failed != nil && ctx.Err() != nil {
			return false
		}
		note := ""
		if failed != nil {
			d.attempt++
			w.Logger.Warn("an action failed", "rule", d.alert.Rule, "run", d.alert.Run, "attempt", d.attempt, "of", attempts, "error", failed)
			if d.attempt < attempts {
				d.next = time.Now().Add(w.Poll << d.attempt)
				return false
			}
			note = "given up: " + failed.Error()
		}
		w.State.add(d.alert.fired(time.Now(), note))
		errs = append(errs, w.State.save())
		return true
	})
	return cmp.Or(errors.Join(errs...), ctx.Err())
}

// try performs the actions that have not succeeded.
func (d *delivery) try(ctx context.Context) error {
	var errs []error
	d.todo = slices.DeleteFunc(d.todo, func(a Action) bool {
		err := a.Do(ctx, d.alert)
		errs = append(errs, err)
		return err == nil
	})
	return errors.Join(errs...)
}
