package alert

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// curve makes points at steps from 1 on, ten seconds apart.
func curve(values ...float64) (points []Sample) {
	for i, v := range values {
		points = append(points, Sample{Step: int64(i) + 1, WallTime: 1e9 + 10*float64(i), Value: v})
	}
	return points
}

// ramp returns values from first on, each so much above the one before.
func ramp(n int, first, by float64) (values []float64) {
	for i := range n {
		values = append(values, first+by*float64(i))
	}
	return values
}

func TestRules(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	flat := slices.Concat(ramp(5, 0, 1), slices.Repeat([]float64{2, 3}, 20))
	resumed := curve(1, 2, 3, 2, 3, 2)
	for i := 3; i < len(resumed); i++ {
		resumed[i].WallTime += 7200
	}
	for _, tc := range []struct {
		rule   string
		points []Sample
		step   int64 // 0: it does not hold
	}{
		{"t is NaN", curve(1, inf, nan, nan), 3},
		{"t is nan", curve(1, inf, 2), 0},
		{"t is Inf", curve(1, nan, -inf), 3},
		{"t is infinite", curve(1, inf), 2},
		{"t is not finite", curve(1, 2, nan), 3},
		{"t < 0.5", curve(1, nan, 0.5, 0.25), 4},
		{"t <= 0.5", curve(1, nan, 0.5, 0.25), 3},
		{"t > 1e3", curve(1000, 1001), 2},
		{"t >=1e3", curve(999, 1000), 2},
		{"t > 5", curve(nan, 1), 0},

		{"t stalls 1m", curve(ramp(100, 0, 1)...), 0},
		{"t stalls 1m", curve(ramp(100, 0, -1)...), 0},
		{"t stalls 1m", curve(flat...), 11}, // the highest was step 5
		{"t stalls for 10 steps", curve(flat...), 15},
		{"t stalls 1d", curve(flat...), 0},
		{"t stalls 1m", curve(slices.Concat(ramp(3, 0, 1), slices.Repeat([]float64{nan}, 50))...), 0},
		{"t stalls 1h", resumed, 0}, // it was not running for two hours
		{"t stops rising for 1m", curve(ramp(20, 0, -1)...), 7},
		{"t stops falling for 1m", curve(ramp(20, 0, -1)...), 0},
		{"t stops falling for 4 steps", curve(ramp(20, 0, 1)...), 5},

		{"t rises by 10% over 2 steps", curve(100, 100, 109, 110), 4},
		{"t rises by 10 over 2 steps", curve(100, 100, 109, 110), 4},
		{"t rises by 10 % over 20s", curve(-100, -100, -95, -90), 4},
		{"t rises by 10% over 3 steps", curve(100, 111, 100, 100), 0},
		{"t falls by 50% over 1 steps", curve(8, 5, nan, 2), 4},
		{"t falls by 50% over 5 steps", curve(8, 5, 2), 0},
		{"t rises by 10% over 1 step", curve(0, 0, 0), 0},
	} {
		r, err := ParseRule(tc.rule)
		if err != nil {
			t.Error(err)
			continue
		}
		p, ok := r.points.find(slices.Values(tc.points))
		if ok != (tc.step != 0) || p.Step != tc.step {
			t.Errorf("%s: found %v, step %d; want step %d", tc.rule, ok, p.Step, tc.step)
		}
	}
}

func TestRuleTags(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		matches []string
		others  []string
	}{
		{"loss is NaN", []string{"loss"}, []string{"loss/a", "val/loss", ""}},
		{`"my loss" is NaN`, []string{"my loss"}, []string{"my"}},
		{`"a\"b" > 1`, []string{`a"b`}, nil},
		{`/loss$/ is NaN`, []string{"loss", "val/loss"}, []string{"loss/a"}},
		{`/a/b c/ is NaN`, []string{"a/b c"}, []string{"a"}},
		{"run has no new point for 1h", []string{"run"}, []string{"x"}},
		{`"run" is silent for 1h`, []string{"run"}, []string{"x"}},
	} {
		r, err := ParseRule(tc.rule)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, tag := range tc.matches {
			if !r.tags(tag) {
				t.Errorf("%s: not about %q", tc.rule, tag)
			}
		}
		for _, tag := range tc.others {
			if r.tags(tag) {
				t.Errorf("%s: about %q", tc.rule, tag)
			}
		}
	}
	r, err := ParseRule("run  is silent\tfor 1d12h")
	if err != nil || r.tags != nil || r.silent.Hours() != 36 || r.Text != "run  is silent\tfor 1d12h" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBadRules(t *testing.T) {
	for rule, want := range map[string]string{
		"":                            "is empty",
		"loss":                        "says nothing",
		"loss is":                     "not understood",
		"loss is NaN now":             `"now" is left over`,
		"loss < ":                     "want a number",
		"loss < NaN":                  "want a number",
		"loss<1":                      "says nothing",
		"loss stalls":                 "want a duration",
		"loss stalls 3":               "number of steps",
		"loss stalls 1.5 steps":       "number of steps",
		"loss stalls -1h":             "above zero",
		"loss stalls 5 parsecs":       "number of steps",
		"loss rises by 10%":           "want `over`",
		"loss rises by NaN% over 1h":  "above zero",
		"loss has no new point for x": "want a duration",
		"/loss is NaN":                "does not end in a slash",
		"/lo(ss/ is NaN":              "missing closing )",
		`"loss is NaN`:                "not closed",
	} {
		if _, err := ParseRule(rule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want one with %q", rule, err, want)
		}
	}
}

// FuzzParseRule reads any text: what is accepted can be read again.
func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"loss is NaN", `"a b" < 1e3`, "/x/ stalls 2d3h", "t rises by 5 % over 10 steps", "run is silent for 10m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		if r.points == nil && r.silent <= 0 {
			t.Errorf("%q says nothing", text)
		}
	})
}
