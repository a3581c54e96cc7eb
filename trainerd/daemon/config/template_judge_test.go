package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// TestJudge proposes hidden layers only where they promise a gain.
func TestJudge(t *testing.T) {
	words := map[string]float64{"north": 1, "south": 4, "east": -2}
	word := func(i int) string { return []string{"north", "south", "east"}[i%3] }
	for _, c := range []struct {
		name   string
		task   dataset.Task
		rows   int
		row    func(i int, r *rand.Rand) (features []any, label any)
		family string
		found  string
	}{
		{"a noisy sum of few rows", dataset.Regression, 40, func(i int, r *rand.Rand) ([]any, any) {
			a, b := r.NormFloat64(), r.NormFloat64()
			return []any{a, b, r.NormFloat64(), r.NormFloat64(), r.NormFloat64()}, a + 2*b + r.NormFloat64()
		}, "linear", "family is linear"},
		{"words that add up", dataset.Regression, 90, func(i int, r *rand.Rand) ([]any, any) {
			a := r.NormFloat64()
			return []any{word(i), a}, words[word(i)] + a
		}, "linear", "family is linear"},
		{"a bend", dataset.Regression, 200, func(i int, r *rand.Rand) ([]any, any) {
			a := r.NormFloat64()
			return []any{a, r.NormFloat64()}, a * a
		}, "mlp_regressor", "so hidden layers are added"},
		{"missing numbers", dataset.Regression, 60, func(i int, r *rand.Rand) ([]any, any) {
			a, b := r.NormFloat64(), r.NormFloat64()
			if i%5 == 0 {
				return []any{a, ""}, a
			}
			return []any{a, b}, a + 0.01*b
		}, "linear", "family is linear"},
		{"too many rows to be learnt by heart", dataset.Regression, mostRows*5/4 + 10, func(i int, r *rand.Rand) ([]any, any) {
			a := r.NormFloat64()
			return []any{a, r.NormFloat64()}, a
		}, "mlp_regressor", ""},
		{"classes by a sum, with noise", dataset.Classification, 200, func(i int, r *rand.Rand) ([]any, any) {
			a, b := r.NormFloat64(), r.NormFloat64()
			return []any{a, b, r.NormFloat64(), word(i)}, a+b+2*r.NormFloat64() > 0
		}, "softmax", "family is softmax"},
		{"classes by a circle", dataset.Classification, 300, func(i int, r *rand.Rand) ([]any, any) {
			a, b := r.NormFloat64(), r.NormFloat64()
			return []any{a, b}, a*a+b*b > 1.4
		}, "mlp", "so hidden layers are added"},
		{"classes", dataset.Classification, 50, func(i int, r *rand.Rand) ([]any, any) {
			return []any{r.NormFloat64(), r.NormFloat64()}, word(i)
		}, "softmax", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, name := templateOf(t, c.task, c.rows, c.row)
			found, err := judge(t, p, name)
			if err != nil || !strings.Contains(found, c.found) || found != "" && c.found == "" {
				t.Errorf("found %q, %v; want %q", found, err, c.found)
			}
			text, err := p.Text(name)
			if err != nil || !strings.Contains(text, "family = \""+c.family+`"`) {
				t.Errorf("want family %s: %v\n%s", c.family, err, text)
			}
			if _, err := parse(name, []byte(text), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestJudgeWithoutData leaves it to the check to say that a file cannot be read.
func TestJudgeWithoutData(t *testing.T) {
	p, name := templateOf(t, dataset.Regression, 30, func(i int, r *rand.Rand) ([]any, any) { return []any{r.Float64()}, i * i })
	if err := os.Remove(filepath.Join(filepath.Dir(name), p.File)); err != nil {
		t.Fatal(err)
	}
	if found, err := judge(t, p, name); found != "" || err != nil {
		t.Errorf("found %q, %v", found, err)
	}
}

// judge loads the data of a template and judges them.
func judge(t *testing.T, p *Template, name string) (string, error) {
	d, err := p.Load(t.Context(), name)
	if err != nil {
		return "", err
	}
	if d != nil {
		defer d.Close()
	}
	return p.Judge(d)
}

// TestJudgeGroups leaves out the rows of a group together: what tells one from
// another says nothing of others.
func TestJudgeGroups(t *testing.T) {
	level := func(group int) float64 { return float64(group * group % 17) }
	p, name := templateOf(t, dataset.Regression, 240, func(i int, r *rand.Rand) ([]any, any) {
		g := i % 24
		return []any{r.NormFloat64(), float64(g) + 0.01*r.NormFloat64(), fmt.Sprint("p", g)}, level(g) + r.NormFloat64()
	})
	column, _ := p.Survey.Column("f2")
	p.Plan.GroupBy(column)
	found, err := judge(t, p, name)
	if err != nil || !strings.Contains(found, "all others of their f2") || !strings.Contains(found, "family is linear") {
		t.Errorf("found %q, %v; want a weighted sum, for other groups", found, err)
	}
	p.Plan.Ungroup()
	if found, err = judge(t, p, name); err != nil || !strings.Contains(found, "hidden layers are added") {
		t.Errorf("found %q, %v; want hidden layers, for the same groups", found, err)
	}
}

// TestJudgeWeights leaves rows aside that count nothing in the training.
func TestJudgeWeights(t *testing.T) {
	p, name := templateOf(t, dataset.Regression, 300, func(i int, r *rand.Rand) ([]any, any) {
		a, b := r.NormFloat64(), r.NormFloat64()
		if i%2 == 0 {
			return []any{a, b, 0}, 20 * a * b
		}
		return []any{a, b, 1}, a + 0.1*r.NormFloat64()
	})
	column, _ := p.Survey.Column("f2")
	p.Weight = p.Plan.Weigh(column)
	found, err := judge(t, p, name)
	if err != nil || !strings.Contains(found, "R2 0.9") || !strings.Contains(found, "family is linear") {
		t.Errorf("found %q, %v; want a weighted sum", found, err)
	}
}

// TestJudgeNoise holds the weights of hidden layers smaller where the labels are noisy.
func TestJudgeNoise(t *testing.T) {
	for noise, want := range map[float64]string{0.02: "\nl2 = 0.01 ", 0.9: "\nl2 = 0.03 ", 2: "\nl2 = 0.07 "} {
		p, name := templateOf(t, dataset.Regression, 400, func(i int, r *rand.Rand) ([]any, any) {
			a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
			return []any{a, b, c}, a + b*b + noise*r.NormFloat64()
		})
		if found, err := judge(t, p, name); err != nil || !strings.Contains(found, "hidden layers are added") {
			t.Fatalf("noise %v: found %q, %v; want hidden layers", noise, found, err)
		}
		if text, err := p.Text(name); err != nil || !strings.Contains(text, want) {
			t.Errorf("noise %v: want the line%s in\n%s (%v)", noise, want, text, err)
		}
	}
}

// templateOf writes a table, and returns its template and the name of its config.
func templateOf(t *testing.T, task dataset.Task, rows int, row func(int, *rand.Rand) ([]any, any)) (*Template, string) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	for i := range rows {
		features, label := row(i, r)
		if i == 0 {
			for n := range features {
				fmt.Fprintf(&text, "f%d,", n)
			}
			fmt.Fprintln(&text, "result")
		}
		for _, f := range features {
			fmt.Fprintf(&text, "%v,", f)
		}
		fmt.Fprintln(&text, label)
	}
	file := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	survey, err := dataset.NewSurvey(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	label, _ := survey.Column("result")
	plan, err := survey.Plan(t.Context(), label, task)
	if err != nil {
		t.Fatal(err)
	}
	return &Template{Name: "table", File: "table.csv", Survey: survey, Plan: plan}, filepath.Join(filepath.Dir(file), "job.toml")
}
