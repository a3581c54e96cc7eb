package retention

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
)

// stored returns checkpoints of the steps 10, 20, ..., one every 20 minutes,
// with these values of a loss.
func stored(values ...float64) []Checkpoint {
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var all []Checkpoint
	for i, v := range values {
		all = append(all, Checkpoint{
			Step: int64(i+1) * 10, Saved: start.Add(time.Duration(i) * 20 * time.Minute),
			Metrics: map[string]float64{"loss": v},
		})
	}
	return all
}

func keptSteps(p Policy, all []Checkpoint) []int64 {
	var steps []int64
	for i, why := range p.Keep(all) {
		if why != "" {
			steps = append(steps, all[i].Step)
		}
	}
	return steps
}

func TestPolicies(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, tc := range map[string]struct {
		policy Policy
		values []float64
		want   []int64
	}{
		"last":                    {Last(2), []float64{1, 1, 1}, []int64{20, 30}},
		"last, fewer there":       {Last(5), []float64{1, 1}, []int64{10, 20}},
		"last, none":              {Last(0), []float64{1, 1}, nil},
		"last, negative":          {Last(-1), []float64{1, 1}, nil},
		"every hour":              {Every(time.Hour), []float64{1, 1, 1, 1, 1, 1, 1}, []int64{10, 40, 70}},
		"every 30 minutes":        {Every(30 * time.Minute), []float64{1, 1, 1, 1}, []int64{10, 30}},
		"every, off":              {Every(0), []float64{1, 1}, nil},
		"steps":                   {Steps{20, 99}, []float64{1, 1, 1}, []int64{20}},
		"best":                    {Best{Metric: "loss"}, []float64{3, 1, 2}, []int64{20}},
		"best two":                {Best{Metric: "loss", N: 2}, []float64{3, 1, 2}, []int64{20, 30}},
		"highest":                 {Best{Metric: "loss", Highest: true}, []float64{3, 1, 2}, []int64{10}},
		"best, more than there":   {Best{Metric: "loss", N: 9}, []float64{3, nan, 2}, []int64{10, 30}},
		"best, NaN":               {Best{Metric: "loss"}, []float64{nan, nan}, nil},
		"best, infinite":          {Best{Metric: "loss", Highest: true}, []float64{1, inf}, []int64{20}},
		"best, equal":             {Best{Metric: "loss"}, []float64{1, 1}, []int64{10}},
		"each":                    {Each(func(c Checkpoint) string { return map[int64]string{20: "pinned"}[c.Step] }), []float64{1, 1, 1}, []int64{20}},
		"best of another metric":  {Best{Metric: "auc"}, []float64{1, 1}, nil},
		"nothing there":           {Best{Metric: "loss"}, nil, nil},
		"nothing there, the last": {Last(1), nil, nil},
	} {
		if got := keptSteps(tc.policy, stored(tc.values...)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: kept %v, want %v", name, got, tc.want)
		}
	}
}

// The clock is set forth and back by a day: from no two that stay is it more than
// two hours, and looking again at what stays removes nothing.
func TestEveryWhenTheClockIsSet(t *testing.T) {
	for name, set := range map[string][]time.Duration{
		"back": {0, 0, 0, -day}, "forth": {0, 0, 0, day}, "forth and back": {0, 0, day, 0}, "back and forth": {day, day, day, 0, 0, 0, 0, day},
	} {
		all := stored(make([]float64, 24)...)
		for i := range all {
			all[i].Saved = all[i].Saved.Add(set[min(i/3, len(set)-1)])
		}
		kept := keptSteps(Every(time.Hour), all)
		for i, step := range kept[1:] {
			if apart := step - kept[i]; apart > 60 {
				t.Errorf("%s: none of the steps between %d and %d stays", name, kept[i], step)
			}
		}
		left := slices.DeleteFunc(slices.Clone(all), func(c Checkpoint) bool { return !slices.Contains(kept, c.Step) })
		if again := keptSteps(Every(time.Hour), left); !slices.Equal(again, kept) {
			t.Errorf("%s: of %v only %v stay the next time", name, kept, again)
		}
	}
}

const day = 24 * time.Hour

// Step 0 can be asked for as any other; a checkpoint whose name has no step
// cannot.
func TestStepsOfNames(t *testing.T) {
	all := []Checkpoint{{Step: NoStep}, {Step: 0}, {Step: 1}}
	if got := keptSteps(Steps{NoStep, 0}, all); !slices.Equal(got, []int64{0}) {
		t.Errorf("kept %v, want step 0 only", got)
	}
}

func TestBestPrefersEvaluations(t *testing.T) {
	const eval, batch, program = manifest.SourceEval, manifest.SourceTrain, manifest.SourceProgram
	for name, tc := range map[string]struct {
		values  []float64
		sources []string
		want    []int64 // the best two
	}{
		"batches":             {[]float64{1, 2, 3}, []string{batch, batch, batch}, []int64{10, 20}},
		"batches, evaluation": {[]float64{1, 9, 2}, []string{batch, eval, batch}, []int64{20}},
		"NaN evaluation":      {[]float64{1, math.NaN(), 2}, []string{batch, eval, batch}, []int64{10, 30}},
		"older manifests":     {[]float64{1, 2, 3}, []string{"", "", ""}, []int64{10, 20}},
		"program":             {[]float64{1, 0}, []string{program, program}, []int64{10, 20}},
	} {
		all := stored(tc.values...)
		for i, s := range tc.sources {
			all[i].Sources = map[string]string{"loss": s}
		}
		if got := keptSteps(Best{Metric: "loss", N: 2}, all); !slices.Equal(got, tc.want) {
			t.Errorf("%s: kept %v, want %v", name, got, tc.want)
		}
	}
}

func TestReasons(t *testing.T) {
	var lines []string
	policies := []Policy{Last(1), Best{Metric: "loss", N: 2}, Every(time.Hour), Steps{20}}
	for i, why := range Reasons(policies, stored(3, 1, 4, 2)) {
		lines = append(lines, fmt.Sprint(i, " ", strings.Join(why, "; ")))
	}
	want := []string{
		"0 one every 1h0m0s",
		"1 best loss, place 1: 1; step asked for",
		"2 ",
		"3 among the last 1; best loss, place 2: 2; one every 1h0m0s",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

// A policy of a user that returns more or fewer reasons than there are
// checkpoints does no harm.
func TestReasonsOfWrongLength(t *testing.T) {
	got := Reasons([]Policy{fixed{"a", "", "c", "d"}, fixed{"x"}}, stored(1, 2, 3))
	want := [][]string{{"a", "x"}, nil, {"c"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type fixed []string

func (f fixed) Keep([]Checkpoint) []string { return f }
