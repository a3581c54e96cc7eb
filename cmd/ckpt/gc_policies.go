package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/ckptfmt"
	"github.com/trainerd/trainerd/ckptfmt/ckptdir"
	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/ckptfmt/retention"
)

// verdict is a checkpoint with the reason why it stays, "" if it is removed.
type verdict struct {
	ckptdir.Checkpoint
	why string
}

// gcPolicies returns the policies that the flags of `ckpt gc` ask for.
func gcPolicies(c *cli.Context, list []ckptdir.Checkpoint) ([]retention.Policy, error) {
	last, every, best := c.Int("keep-last"), c.Duration("keep-every"), c.Int("keep-best")
	if last < 0 || every < 0 || best < 0 {
		return nil, usagef("--keep-last, --keep-every and --keep-best take no negative number")
	}
	mode := c.String("mode")
	if mode != "min" && mode != "max" {
		return nil, usagef("--mode takes min or max, not %q", mode)
	}
	if best == 0 && (c.IsSet("metric") || c.IsSet("mode")) {
		return nil, usagef("--metric and --mode are about --keep-best")
	}
	var pins keepPinned
	for _, pin := range c.StringSlice("pin") {
		if m := fileOfCheckpoint().FindString(pin); m != "" {
			pin = strings.TrimSuffix(pin, m)
		}
		pins = append(pins, pin)
	}
	policies := []retention.Policy{pins, retention.Last(last)}
	if best > 0 {
		metric, err := metricOf(c, list)
		if err != nil {
			return nil, err
		}
		policies = append(policies, retention.Best{Metric: metric, Highest: mode == "max", N: best})
	}
	return append(policies, retention.Every(every)), nil
}

// judge decides about checkpoints that are ordered as [ckptdir.List] orders
// them. The current one always stays. It is an error matching
// [ckptfmt.ErrNotFound] when the best are to stay and none has a value, or when
// a pinned one is not there.
func judge(policies []retention.Policy, list []ckptdir.Checkpoint) ([]verdict, error) {
	stored := make([]retention.Checkpoint, len(list))
	for i, c := range list {
		stored[i] = retention.Checkpoint{Prefix: c.Prefix, Step: c.Step, Saved: c.Time}
	}
	for _, p := range policies {
		switch p := p.(type) {
		case keepPinned:
			if err := p.check(stored); err != nil {
				return nil, err
			}
		case retention.Best:
			if err := readMetric(stored, p.Metric); err != nil {
				return nil, err
			}
		}
	}
	out := make([]verdict, len(list))
	for i, why := range retention.Reasons(policies, stored) {
		out[i].Checkpoint = list[i]
		switch {
		case list[i].Latest:
			out[i].why = "current"
		case len(why) > 0:
			out[i].why = why[0]
		}
	}
	return out, nil
}

// keepPinned keeps the checkpoints of these paths, names or steps.
type keepPinned []string

// Keep implements [retention.Policy].
func (pins keepPinned) Keep(all []retention.Checkpoint) []string {
	why := make([]string, len(all))
	for i, c := range all {
		if slices.ContainsFunc(pins, func(pin string) bool { return isPin(pin, c) }) {
			why[i] = "pinned"
		}
	}
	return why
}

// check refuses a pin that means no checkpoint.
func (pins keepPinned) check(all []retention.Checkpoint) error {
	for _, pin := range pins {
		if !slices.ContainsFunc(all, func(c retention.Checkpoint) bool { return isPin(pin, c) }) {
			return fmt.Errorf("%w: the pinned checkpoint %q does not exist", ckptfmt.ErrNotFound, pin)
		}
	}
	return nil
}

// isPin reports whether a pin means the checkpoint: by path, name or step.
func isPin(pin string, c retention.Checkpoint) bool {
	if pin == filepath.Base(c.Prefix) || c.Step >= 0 && pin == strconv.FormatInt(c.Step, 10) {
		return true
	}
	a, errA := filepath.Abs(pin)
	b, errB := filepath.Abs(c.Prefix)
	return errA == nil && errB == nil && a == b
}

// readMetric enters a metric's values from the manifests. A manifest that
// cannot be read is an error: what it says might have kept the checkpoint.
func readMetric(all []retention.Checkpoint, metric string) error {
	found := false
	for i := range all {
		m, err := manifest.Read(all[i].Prefix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		v, source, ok := m.Value(metric)
		if !ok || v != v { // NaN
			continue
		}
		found = true
		all[i].Metrics = map[string]float64{metric: float64(v)}
		all[i].Sources = map[string]string{metric: source}
	}
	if !found {
		return fmt.Errorf("%w: no checkpoint's manifest has a value of %q", ckptfmt.ErrNotFound, metric)
	}
	return nil
}

// metricOf returns the metric that --keep-best goes by.
func metricOf(c *cli.Context, list []ckptdir.Checkpoint) (string, error) {
	if name := c.String("metric"); name != "" {
		return name, nil
	}
	names, err := metricNames(list)
	if err != nil {
		return "", err
	}
	if len(names) > 1 {
		return "", usagef("--keep-best needs --metric NAME, one of %s", strings.Join(names, ", "))
	}
	if len(names) == 0 {
		return "", fmt.Errorf("%w: no checkpoint's manifest has a metric, so none is the best; nothing was removed", ckptfmt.ErrNotFound)
	}
	return names[0], nil
}

// metricNames returns the metrics that the manifests have.
func metricNames(list []ckptdir.Checkpoint) ([]string, error) {
	names := map[string]bool{}
	for _, ck := range list {
		m, err := manifest.Read(ck.Prefix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for name := range m.Values() {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}
