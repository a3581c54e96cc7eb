// Package retention decides which checkpoints are kept: the policies of a
// Saver and of the command ckpt gc.
//
//	policies := []retention.Policy{retention.Last(5), retention.Every(time.Hour), retention.Best{Metric: "loss"}}
//	for i, why := range retention.Reasons(policies, all) {
//		if len(why) == 0 { ... } // nothing keeps all[i]
//	}
//
// A policy depends only on its arguments, so it decides the same after a
// restart. The package has no state, starts no goroutines and touches no
// files.
package retention

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// NoStep is the step of a checkpoint whose name has no step.
const NoStep = -1

// Checkpoint is a checkpoint as a [Policy] sees it.
type Checkpoint struct {
	Prefix string
	Step   int64 // NoStep if its name has none
	Saved  time.Time
	// Metrics are those of the model in the checkpoint, without values
	// measured at another step.
	Metrics map[string]float64
	// Sources say what measured a metric, as in [manifest.Measurement]; "" for a
	// manifest of an older version.
	Sources map[string]string
}

// Policy keeps certain checkpoints. A checkpoint is removed only if no policy
// keeps it.
type Policy interface {
	// Keep returns for each checkpoint, oldest first, a short reason why it is
	// kept, or "" if the policy does not keep it.
	Keep(all []Checkpoint) []string
}

// Reasons returns for each checkpoint why it is kept, in the order of the
// policies; none if no policy keeps it.
func Reasons(policies []Policy, all []Checkpoint) [][]string {
	why := make([][]string, len(all))
	for _, p := range policies {
		for i, reason := range p.Keep(all) {
			if i < len(why) && reason != "" {
				why[i] = append(why[i], reason)
			}
		}
	}
	return why
}

// Each is a [Policy] that judges each checkpoint separately: it returns a short reason why one is
// kept, or "".
type Each func(c Checkpoint) (why string)

// Keep implements [Policy].
func (judge Each) Keep(all []Checkpoint) []string {
	why := make([]string, len(all))
	for i, c := range all {
		why[i] = judge(c)
	}
	return why
}

// Last is a [Policy] that keeps that many of the newest checkpoints.
type Last int

// Keep implements [Policy].
func (n Last) Keep(all []Checkpoint) []string {
	why := make([]string, len(all))
	for i := max(len(all)-max(int(n), 0), 0); i < len(all); i++ {
		why[i] = fmt.Sprintf("among the last %d", n)
	}
	return why
}

// Every is a [Policy] that keeps checkpoints at least that far apart in time:
// the oldest, then each that is at least that much newer than the previously
// kept one, or that much older, because the clock was set back in between. 0
// keeps none.
type Every time.Duration

// Keep implements [Policy].
func (every Every) Keep(all []Checkpoint) []string {
	why := make([]string, len(all))
	if every <= 0 {
		return why
	}
	var last time.Time
	for i, c := range all {
		if i == 0 || c.Saved.Sub(last).Abs() >= time.Duration(every) {
			last = c.Saved
			why[i] = fmt.Sprintf("one every %v", time.Duration(every))
		}
	}
	return why
}

// Steps is a [Policy] that keeps the checkpoints of certain steps.
type Steps []int64

// Keep implements [Policy].
func (steps Steps) Keep(all []Checkpoint) []string {
	why := make([]string, len(all))
	for i, c := range all {
		if c.Step >= 0 && slices.Contains(steps, c.Step) {
			why[i] = "step asked for"
		}
	}
	return why
}

// Best is a [Policy] that keeps the checkpoints with the best values of a
// metric. A checkpoint without the metric, or whose value is NaN, is never
// among the best. If some have a value from an evaluation, only those count.
// Of equal values the older checkpoint is better.
type Best struct {
	Metric string
	// Highest says that more is better, as for an accuracy; otherwise less is
	// better, as for a loss.
	Highest bool
	N       int // how many; 0 means one
}

// Keep implements [Policy].
func (b Best) Keep(all []Checkpoint) []string {
	why := make([]string, len(all))
	ranked := b.comparable(all)
	slices.SortStableFunc(ranked, func(i, j int) int {
		x, y := all[i].Metrics[b.Metric], all[j].Metrics[b.Metric]
		if b.Highest {
			x, y = y, x
		}
		return cmp.Compare(x, y)
	})
	for rank, i := range ranked[:min(len(ranked), max(b.N, 1))] {
		why[i] = fmt.Sprintf("best %s, place %d: %v", b.Metric, rank+1, all[i].Metrics[b.Metric])
	}
	return why
}

// comparable returns the indices of the checkpoints whose values may be ranked:
// a value of an evaluation says more than one of a training batch, so where
// there are such values only they count.
func (b Best) comparable(all []Checkpoint) []int {
	var rated, evaluated []int
	for i, c := range all {
		v, ok := c.Metrics[b.Metric]
		if !ok || math.IsNaN(v) {
			continue
		}
		rated = append(rated, i)
		if c.Sources[b.Metric] == manifest.SourceEval {
			evaluated = append(evaluated, i)
		}
	}
	if len(evaluated) > 0 {
		return evaluated
	}
	return rated
}
