package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/rewrite"
)

func emaCommand() *cli.Command {
	return &cli.Command{
		Name:      "ema",
		Usage:     "replace variables by their moving averages",
		ArgsUsage: "PREFIX NEWPREFIX | --over LOGDIR NEWPREFIX",
		Description: `Each variable that has an average, NAME/ExponentialMovingAverage, gets its
value; of Keras optimizers with use_ema, the graph of objects names the
averages. They are left out unless --keep is given. Exits with 5 if there are
none.

With --over the averages are made of the checkpoints in LOGDIR, from the oldest
to the newest, whose integers and strings they have: each makes of the average
--decay of what it was, and the rest of the checkpoint's values. Files and folders of
other formats count if their names have numbers, by which all are sorted:
model-10.safetensors, checkpoint-20. --name and --keep have no meaning there.` + rewriteHelp,
		Flags: rewriteFlags(
			&cli.StringFlag{Name: "name", Value: rewrite.AverageName, Usage: "`NAME` of the averages, after that of the variable"},
			&cli.StringFlag{Name: "over", Usage: "average the checkpoints in `LOGDIR`"},
			&cli.Float64Flag{Name: "decay", Value: 0.9, Usage: "with --over, keep so much of the average in each step"},
			&cli.BoolFlag{Name: "keep", Usage: "keep the averages next to the variables"},
		),
		Action: func(c *cli.Context) error {
			if c.IsSet("over") {
				return emaOver(c)
			}
			if c.IsSet("decay") {
				return usagef("--decay is about --over")
			}
			a, err := args(c, "PREFIX", "NEWPREFIX")
			if err != nil {
				return err
			}
			return rewriteOne(c, a[0], a[1], func(s *rewrite.Source) error {
				n, err := s.UseAverages(c.String("name"), c.Bool("keep"))
				if err != nil {
					return fmt.Errorf("%w; --name takes another name", err)
				}
				fmt.Fprintf(c.App.ErrWriter, "%d averages\n", n)
				return nil
			})
		},
	}
}

func avgCommand() *cli.Command {
	return &cli.Command{
		Name:      "avg",
		Usage:     "average several checkpoints, element by element",
		ArgsUsage: "PREFIX ... NEWPREFIX",
		Description: `All must have the same tensors. Floating-point and complex numbers are averaged
in float64 and rounded to their type. Integers, such as the global step, bools
and strings are those of the last checkpoint. --weights has a number for each
checkpoint, which need not add up to 1.` + rewriteHelp,
		Flags:  rewriteFlags(&cli.StringFlag{Name: "weights", Usage: "weight the checkpoints by `W,W,...`"}),
		Action: avg,
	}
}

func avg(c *cli.Context) error {
	names, err := manyArgs(c, 2, "PREFIX ... NEWPREFIX")
	if err != nil {
		return err
	}
	last := len(names) - 1
	weights, err := weightsOf(c.String("weights"), last)
	if err != nil {
		return err
	}
	return average(c, names[:last], weights, names[last])
}

// average writes the mean of checkpoints, or with weights the weighted one.
func average(c *cli.Context, names []string, weights []float64, to string) (err error) {
	var sources []*rewrite.Source
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, name := range names {
		s, _, err := openSource(name)
		if err != nil {
			return err
		}
		sources = append(sources, s)
		if err := choose(c, s); err != nil { // so that what is damaged may be left out
			return err
		}
	}
	mean, err := rewrite.Average(sources, weights)
	switch {
	case err != nil && (isDamage(err) || errors.Is(err, ckptfmt.ErrType)):
		return withNext(c, err)
	case err != nil:
		return fmt.Errorf("%w; `ckpt diff` shows what differs", err)
	}
	_, err = rewriteTo(c, mean, to)
	return err
}

// weightsOf parses the numbers of --weights, nil where there are none.
func weightsOf(text string, n int) ([]float64, error) {
	if text == "" {
		return nil, nil
	}
	var list []float64
	total := 0.0
	for part := range strings.SplitSeq(text, ",") {
		w, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsNaN(w) || math.IsInf(w, 0) {
			return nil, usagef("--weights must be numbers with commas between them, got %q", text)
		}
		list = append(list, w)
		total += w
	}
	if len(list) != n {
		return nil, usagef("--weights has %d numbers for %d checkpoints", len(list), n)
	}
	if total == 0 || math.IsInf(total, 0) {
		return nil, usagef("the sum of --weights is %v", total)
	}
	return list, nil
}

// emaOver averages the checkpoints of a directory, the newest with the largest
// weight.
func emaOver(c *cli.Context) error {
	a, err := args(c, "--over LOGDIR NEWPREFIX")
	if err != nil {
		return err
	}
	decay := c.Float64("decay")
	if !(decay >= 0 && decay < 1) {
		return usagef("--decay must be at least 0 and less than 1")
	}
	if c.IsSet("keep") || c.IsSet("name") {
		return usagef("--name and --keep are about averages that a checkpoint holds, not about --over")
	}
	list, err := savedIn(c.String("over"))
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: there are no checkpoints in %s, and no files of other formats with a number in their names", ckptfmt.ErrNotFound, c.String("over"))
	}
	names, weights := make([]string, len(list)), make([]float64, len(list))
	for i, s := range list {
		names[i] = s.path
		weights[i] = math.Pow(decay, float64(len(list)-1-i))
		if i > 0 {
			weights[i] *= 1 - decay
		}
	}
	if err := average(c, names, weights, a[0]); err != nil {
		return err
	}
	fmt.Fprintf(c.App.ErrWriter, "%d checkpoints, from %s to %s\n", len(list), list[0].path, list[len(list)-1].path)
	return nil
}

func mathCommand() *cli.Command {
	return &cli.Command{
		Name:      "math",
		Usage:     "compute with checkpoints, such as the difference that a training made",
		ArgsUsage: "EXPRESSION NAME=PREFIX ... NEWPREFIX",
		Description: `An EXPRESSION has names, numbers, + - * / and parentheses. One that begins with a
minus is written in parentheses:

  ckpt math 'tuned - base' tuned=a/model.ckpt-9 base=b/model.ckpt-1 task
  ckpt math 'base + 0.5*task' base=other/model.ckpt-1 task=task new

It is computed for each element of the floating-point and complex tensors, in
float64 and complex128, and rounded to their type. Integers, such as the global
step, bools and strings are those of the checkpoint that the expression names first.
All must have the same tensors in the same shapes; --missing skip leaves out those
that some do not have, and --missing zero takes zeros for them.` + rewriteHelp,
		Flags:  rewriteFlags(),
		Action: mathAction,
	}
}

func mathAction(c *cli.Context) (err error) {
	words, err := manyArgs(c, 3, "EXPRESSION NAME=PREFIX ... NEWPREFIX")
	if err != nil {
		return err
	}
	e, err := rewrite.ParseExpression(words[0])
	if err != nil {
		return usagef("%w", err)
	}
	last := len(words) - 1
	prefixes, err := bindNames(e, words[1:last])
	if err != nil {
		return err
	}
	missing := rewrite.MissingPolicy(c.String("missing"))
	if !slices.Contains([]rewrite.MissingPolicy{rewrite.FailMissing, rewrite.SkipMissing, rewrite.ZeroMissing}, missing) {
		return usagef("--missing takes error, skip or zero, not %q", string(missing))
	}
	var sources []*rewrite.Source
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, prefix := range prefixes {
		s, _, err := openSource(prefix)
		if err != nil {
			return err
		}
		sources = append(sources, s)
		if err := choose(c, s); err != nil {
			return err
		}
	}
	result, err := rewrite.Evaluate(e, sources, missing)
	if differ := new(rewrite.DifferError); errors.As(err, &differ) {
		return fmt.Errorf("%w; --missing skip leaves them out, --missing zero takes zeros", err)
	}
	if err != nil {
		return withNext(c, err)
	}
	_, err = rewriteTo(c, result, words[last])
	return err
}

// bindNames returns the checkpoints that the names of an expression stand for.
func bindNames(e *rewrite.Expression, words []string) ([]string, error) {
	given := make(map[string]string)
	for _, w := range words {
		name, prefix, ok := strings.Cut(w, "=")
		if !ok || prefix == "" {
			return nil, usagef("%q is not NAME=PREFIX", w)
		}
		if given[name] != "" {
			return nil, usagef("%s has two checkpoints", name)
		}
		if !slices.Contains(e.Names, name) {
			return nil, usagef("the expression does not have %s", name)
		}
		given[name] = prefix
	}
	prefixes := make([]string, len(e.Names))
	for i, name := range e.Names {
		if prefixes[i] = given[name]; prefixes[i] == "" {
			return nil, usagef("no checkpoint is given for %s: %s=PREFIX", name, name)
		}
	}
	return prefixes, nil
}
