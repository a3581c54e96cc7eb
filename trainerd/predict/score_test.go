package predict

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/ckptfmt/manifest"
	"github.com/trainerd/trainerd/trainerd/dataset"
)

// TestAreaUnder compares with the count of all pairs, with many equal scores.
func TestAreaUnder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 2 + rng.IntN(40)
		scores, labels := make([]float32, n), make([]int32, n)
		for i := range n {
			scores[i], labels[i] = float32(rng.IntN(5)), int32(rng.IntN(3))
		}
		wins, pairs := 0.0, 0.0
		for i := range n {
			for j := range n {
				if labels[i] != 1 || labels[j] == 1 {
					continue
				}
				pairs++
				switch {
				case scores[i] > scores[j]:
					wins++
				case scores[i] == scores[j]:
					wins += .5
				}
			}
		}
		got := areaUnder(scores, labels, 1)
		if (got == nil) != (pairs == 0) || got != nil && math.Abs(float64(*got)-wins/pairs) > 1e-12 {
			t.Errorf("%v %v: got %v, want %v of %v", scores, labels, got, wins, pairs)
		}
	}
}

func TestScoreOfNumbers(t *testing.T) {
	s := NewScorer(nil)
	if _, err := s.Score(); err != ErrNoRows {
		t.Errorf("no rows: %v", err)
	}
	for i, label := range []float64{1, 2, 6} {
		s.Add(&Row{Example: &dataset.Example{Label: label}, Value: []float32{2, 2, 4}[i]})
	}
	got, err := s.Score()
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string][2]manifest.Metric{
		"mse": {*got.MSE, 5.0 / 3}, "mae": {*got.MAE, 1}, "baseline": {*got.Baseline, manifest.Metric(math.Sqrt(14.0 / 3))}, "r2": {*got.R2, 1 - 5.0/14},
	} {
		if math.Abs(float64(v[0]-v[1])) > 1e-12 {
			t.Errorf("%s: got %v, want %v", name, v[0], v[1])
		}
	}
}

func TestScoreOfClasses(t *testing.T) {
	s := NewScorer([]string{"a", "b", "c"})
	for _, r := range []struct {
		label float64
		p     []float32
		class int64
	}{{0, []float32{.5, .3, .2}, 0}, {1, []float32{.6, .3, .1}, 0}, {1, []float32{.1, .8, .1}, 1}} {
		s.Add(&Row{Example: &dataset.Example{Label: r.label}, Class: r.class, Probabilities: r.p})
	}
	got, err := s.Score()
	if err != nil {
		t.Fatal(err)
	}
	loss := -(math.Log(.5) + math.Log(.3) + math.Log(.8)) / 3
	if math.Abs(float64(*got.Accuracy-2.0/3)) > 1e-12 || math.Abs(float64(*got.Baseline-2.0/3)) > 1e-12 || math.Abs(float64(*got.Loss)-loss) > 1e-6 {
		t.Errorf("accuracy %v, baseline %v, loss %v", *got.Accuracy, *got.Baseline, *got.Loss)
	}
	if got.Confusion[1][0] != 1 || got.Confusion[1][1] != 1 || got.Confusion[2][2] != 0 {
		t.Errorf("confusion %v", got.Confusion)
	}
	if want := (.5 + .75) / 2; got.AUC == nil || math.Abs(float64(*got.AUC)-want) > 1e-12 {
		t.Errorf("AUC %v, want the mean of a and b, %v", *got.AUC, want)
	}
}

// A model may answer NaN, where a row is far from all that it was trained with: the
// score says so, in JSON too.
func TestScoreWithoutNumbers(t *testing.T) {
	nan := float32(math.NaN())
	classes, numbers := NewScorer([]string{"a", "b"}), NewScorer(nil)
	for i := range 3 {
		row := Row{Example: &dataset.Example{Label: float64(i % 2)}, Value: 1, Probabilities: []float32{.5, .5}}
		if i == 1 {
			row.Value, row.Probabilities = nan, []float32{nan, nan}
		}
		classes.Add(&row)
		numbers.Add(&row)
	}
	for s, want := range map[*Scorer]string{classes: `"loss":"NaN","classes"`, numbers: `"mse":"NaN","rmse":"NaN","mae":"NaN","r2":"NaN"`} {
		got, err := s.Score()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(got); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
	}
}
