package daemon

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"text/tabwriter"

	"github.com/trainerd/trainerd/ckptfmt/inspect"
	"github.com/trainerd/trainerd/ckptfmt/mapping"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
	"github.com/trainerd/trainerd/trainerd/session"
)

// warmStart returns what [warm_start] asks for, for the variables of a session.
func (j *job) warmStart(ctx context.Context, sess session.Session) (*checkpoint.WarmStart, error) {
	c := j.config.WarmStart
	w := &checkpoint.WarmStart{
		Checkpoint: c.From, Averages: c.Averages, Reshape: c.Reshape, Strict: c.IsStrict(), Saver: j.saver(j.log),
	}
	var err error
	if c.Map != "" {
		if w.Map, err = mapping.Open(c.Map); err != nil {
			return nil, err
		}
	}
	include, err := expressions(c.Include)
	if err != nil {
		return nil, err
	}
	exclude, err := expressions(c.Exclude)
	if err != nil {
		return nil, err
	}
	isModel, err := modelVariables(ctx, sess)
	if err != nil {
		return nil, err
	}
	w.Take = func(key string) bool {
		if matchesAny(exclude, key) {
			return false
		}
		return matchesAny(include, key) || len(include) == 0 && isModel(key)
	}
	return w, nil
}

// modelVariables tells the variables of the model from the global step and from
// what optimizers keep.
func modelVariables(ctx context.Context, sess session.Session) (func(name string) bool, error) {
	var names []string
	if store, ok := sess.(session.VariableStore); ok {
		all, err := store.Variables(ctx)
		if err != nil {
			return nil, err
		}
		for _, v := range all {
			names = append(names, v.Name)
		}
	}
	isSlot, isOwn := inspect.SlotsAmong(names), rewrite.OwnNames(names)
	return func(name string) bool { return name != session.DefaultGlobalStep && !isSlot(name) && !isOwn(name) }, nil
}

func expressions(texts []string) ([]*regexp.Regexp, error) {
	var list []*regexp.Regexp
	for _, text := range texts {
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, err
		}
		list = append(list, re)
	}
	return list, nil
}

func matchesAny(list []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}

// initFunc gives the variables of a new model their values.
func (j *job) initFunc() func(ctx context.Context, sess session.Session) error {
	if !j.config.IsWarm() {
		return nil
	}
	return func(ctx context.Context, sess session.Session) error {
		w, err := j.warmStart(ctx, sess)
		if err != nil {
			return err
		}
		report, err := w.Apply(ctx, sess)
		if err != nil {
			return err
		}
		for _, name := range report.Doubtful {
			j.log.Warn("warm start: Keras numbers the layers of its classes otherwise in the checkpoint; this may be the value of another layer", "variable", name)
		}
		for _, d := range report.Different {
			j.log.Warn("warm start: variable is initialised", "variable", d.Variable, "reason", d.String())
		}
		j.log.Info("warm start", "from", w.Checkpoint, "taken", len(report.Restored), "reshaped", len(report.Reshaped),
			"initialised", len(report.Different), "left", len(report.Left))
		return nil
	}
}

// describeWarmStart writes what becomes of each variable of a new model.
func (j *job) describeWarmStart(ctx context.Context, out io.Writer, s *resumePoint) error {
	if !j.config.IsWarm() || !j.config.Supervisor.IsChief {
		return nil
	}
	if s.prefix != "" {
		_, err := fmt.Fprintf(out, "warm start: none, the job continues from %s\n", s.prefix)
		return err
	}
	w, err := j.warmStart(ctx, s.sess)
	if err != nil {
		return err
	}
	report, err := w.Plan(ctx, s.sess)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "warm start from %s: %d taken, %d of them reshaped; %d initialised; %d left; %d tensors are of no use\n",
		w.Checkpoint, len(report.Restored), len(report.Reshaped), len(report.Different), len(report.Left), len(report.Unused)); err != nil {
		return err
	}
	if report.Prefix != "" {
		if _, err := fmt.Fprintf(out, "  %s is taken off the names\n", report.Prefix); err != nil {
			return err
		}
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, name := range report.Restored {
		kind := "taken"
		if slices.Contains(report.Reshaped, name) {
			kind = "reshaped"
		}
		if slices.Contains(report.Doubtful, name) {
			kind += ", perhaps of another layer"
		}
		fmt.Fprintf(t, "  %s\t%s\n", kind, name)
	}
	for _, d := range report.Different {
		fmt.Fprintf(t, "  initialised\t%s\n", d)
	}
	for _, name := range report.Left {
		fmt.Fprintf(t, "  left\t%s\n", name)
	}
	for _, name := range report.Unused {
		fmt.Fprintf(t, "  of no use\t%s\n", name)
	}
	return t.Flush()
}
