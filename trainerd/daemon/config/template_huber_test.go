package config

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/dataset"
)

// TestJudgeHuber proposes huber_loss where a few labels hide what the others show, and only
// there.
func TestJudgeHuber(t *testing.T) {
	for _, c := range []struct {
		name  string
		label func(i int, x float64, r *rand.Rand) float64
		want  bool
	}{
		{"typing errors", func(i int, x float64, r *rand.Rand) float64 {
			if i%97 == 5 {
				return 1e6
			}
			return 3*x + 0.1*r.NormFloat64()
		}, true},
		{"none", func(i int, x float64, r *rand.Rand) float64 { return 3*x + 0.1*r.NormFloat64() }, false},
		{"a long tail that x explains", func(i int, x float64, r *rand.Rand) float64 { return math.Exp(3 * x) }, false},
		{"typing errors in noise", func(i int, x float64, r *rand.Rand) float64 {
			if i%97 == 5 {
				return 1e6
			}
			return r.NormFloat64()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, name := templateOf(t, dataset.Regression, 400, func(i int, r *rand.Rand) ([]any, any) {
				x := r.NormFloat64()
				return []any{x, r.NormFloat64()}, c.label(i, x, r)
			})
			found, err := judge(t, p, name)
			if err != nil || strings.Contains(found, "loss is huber_loss") != c.want {
				t.Errorf("found %q, %v; huber_loss: want %v", found, err, c.want)
			}
			text, err := p.Text(name)
			if err != nil || strings.Contains(text, "\nloss = \"huber_loss\"") != c.want {
				t.Errorf("huber_loss: want %v: %v\n%s", c.want, err, text)
			}
			if _, err := parse(name, []byte(text), nil); err != nil {
				t.Error(err)
			}
		})
	}
}
