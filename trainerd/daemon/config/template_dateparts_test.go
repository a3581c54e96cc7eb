package config

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// TestJudgeDateParts makes inputs of the parts of dates where they say something, and of
// no others.
func TestJudgeDateParts(t *testing.T) {
	day := func(i int) time.Time { return time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i) }
	for _, c := range []struct {
		name  string
		task  dataset.Task
		rows  int
		label func(at time.Time, x float64, r *rand.Rand) any
		found string
		line  string
	}{
		{"a number by the weekday", dataset.Regression, 300, func(at time.Time, x float64, r *rand.Rand) any {
			return x + 5*float64(at.Weekday()%3) + r.NormFloat64()
		}, "; learns from the weekday of f0 too, without which R2 is ", `date_parts = { "f0" = ["weekday"] }`},
		{"a class by the weekday", dataset.Classification, 300, func(at time.Time, x float64, r *rand.Rand) any {
			return at.Weekday() > time.Thursday || x > 2
		}, "; learns from the weekday of f0 too, without which R2 is ", `date_parts = { "f0" = ["weekday"] }`},
		{"a number by anything else", dataset.Regression, 300, func(at time.Time, x float64, r *rand.Rand) any {
			return x + r.NormFloat64()
		}, "; nothing is gained from the weekday of f0", ""},
		{"few rows with classes", dataset.Classification, 60, func(at time.Time, x float64, r *rand.Rand) any {
			return at.Weekday() > time.Thursday
		}, "", ""},
		{"many rows", dataset.Regression, mostRows*5/4 + 10, func(at time.Time, x float64, r *rand.Rand) any {
			return x
		}, "learns from the weekday of f0 too", `date_parts = { "f0" = ["weekday"] }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, name := templateOf(t, c.task, c.rows, func(i int, r *rand.Rand) ([]any, any) {
				at, x := day(r.IntN(200)), r.NormFloat64()
				return []any{at.Format(time.DateOnly), x}, c.label(at, x, r)
			})
			found, err := judge(t, p, name)
			if err != nil || !strings.Contains(found, c.found) || c.found == "" && found != "" {
				t.Errorf("found %q, %v; want %q", found, err, c.found)
			}
			text, err := p.Text(name)
			if err != nil || !strings.Contains(text, c.line) || c.line == "" && strings.Contains(text, "date_parts") {
				t.Errorf("want the line %q: %v\n%s", c.line, err, text)
			}
			if _, err := parse(name, []byte(text), nil); err != nil {
				t.Error(err)
			}
		})
	}
}
