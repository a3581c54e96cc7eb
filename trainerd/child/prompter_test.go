package child

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/child/found"
)

// TestPrompter gives a prompter what happens at certain seconds, and looks when
// it would ask.
func TestPrompter(t *testing.T) {
	const s = time.Second
	at := func(second float64) time.Time { return time.Unix(1e9, 0).Add(time.Duration(second * float64(s))) }
	type happens func(p *prompter)
	step := func(n int64, second float64) happens { return func(p *prompter) { p.trained(n, at(second)) } }
	saves := func(n int64, second float64) happens {
		return func(p *prompter) { p.saved(Checkpoint{Step: n, Saved: at(second)}, false, p.isAsked(), at(second)) }
	}
	stamped := func(n int64, second, stamp float64) happens {
		return func(p *prompter) { p.saved(Checkpoint{Step: n, Saved: at(stamp)}, false, p.isAsked(), at(second)) }
	}
	lacking := func(second float64) happens {
		return func(p *prompter) {
			p.saved(Checkpoint{Step: found.NoStep, Saved: at(second)}, true, p.isAsked(), at(second))
		}
	}
	asked := func(second float64) happens { return func(p *prompter) { p.ask(at(second)) } }
	start := func(p *prompter) { p.begin() }
	tests := []struct {
		name  string
		p     prompter
		story []happens
		at    float64
		want  bool
	}{
		{"before the first report", prompter{every: s}, nil, 100, false},
		{"too early", prompter{every: 10 * s}, []happens{step(1, 0)}, 9, false},
		{"by the clock", prompter{every: 10 * s}, []happens{step(1, 0)}, 10, true},
		{"nothing new", prompter{every: 10 * s}, []happens{step(1, 0), saves(1, 1)}, 20, false},
		{"a save of its own", prompter{every: 10 * s}, []happens{step(1, 0), saves(1, 5), step(2, 6)}, 14, false},
		{"after a save of its own", prompter{every: 10 * s}, []happens{step(1, 0), saves(1, 5), step(2, 6)}, 15, true},
		{"a save without a step", prompter{every: 10 * s}, []happens{step(7, 0), saves(found.NoStep, 5)}, 30, false},
		{"an old save without a step", prompter{every: 10 * s}, []happens{step(7, 0), step(9, 4), lacking(5)}, 15, true},
		{"a save without a step, asked for and late", prompter{every: 10 * s}, []happens{step(7, 0), asked(10), step(9, 11), lacking(12)}, 20, true},
		{"a save without a step, as asked for", prompter{every: 10 * s}, []happens{step(7, 0), asked(10), lacking(12)}, 30, false},
		{"asked", prompter{every: 10 * s}, []happens{step(1, 0), asked(10)}, 19, false},
		{"not answered", prompter{every: 10 * s}, []happens{step(1, 0), asked(10), step(2, 15)}, 20, true},
		{"not answered, and no step since", prompter{every: 10 * s}, []happens{step(1, 0), asked(10)}, 30, false},
		{"a save longer than the interval", prompter{every: 10 * s}, []happens{step(1, 0), asked(10), saves(1, 27), step(2, 28)}, 43, false},
		{"and as long for steps", prompter{every: 10 * s}, []happens{step(1, 0), asked(10), saves(1, 27), step(2, 28)}, 44, true},
		{"from the asking on", prompter{every: 10 * s}, []happens{step(1, 0), asked(10), saves(1, 14), step(2, 15)}, 20, true},
		{"the disk's clock is a day ahead", prompter{every: 10 * s}, []happens{step(1, 0), stamped(1, 5, 86400), step(2, 6)}, 15, true},
		{"the disk's clock is a day ahead, asked", prompter{every: 10 * s, budget: trainerd.SaveBudget{MaxShare: .1}},
			[]happens{step(1, 0), asked(1), stamped(1, 3, 86400), step(2, 4)}, 21, true}, // 2 s each 20
		{"the disk's clock is a day behind", prompter{every: 10 * s}, []happens{step(1, 0), stamped(1, 5, -86400), step(2, 6)}, 9, false},
		{"a save of its own after one asked for", prompter{every: 10 * s}, []happens{step(1, 0), asked(10), saves(1, 12), step(2, 13), saves(2, 30), step(3, 31)}, 40, true},
		{"the first step is 0", prompter{every: 10 * s}, []happens{step(0, 0)}, 10, true},
		{"from step 0 on", prompter{every: 10 * s}, []happens{step(0, 0), step(1, 6)}, 10, true},
		{"another start, from its first report on", prompter{every: 10 * s}, []happens{step(1, 0), start, step(1, 100)}, 109, false},
		{"another start", prompter{every: 10 * s}, []happens{step(1, 0), asked(10), start}, 50, false},
		{"at each step, the first", prompter{steps: 1}, []happens{step(1, 0)}, 1, true},
		{"at each step", prompter{steps: 1}, []happens{step(1, 0), saves(1, 1), step(2, 2)}, 3, true},
		{"by steps, not yet", prompter{steps: 10}, []happens{step(1, 0), step(9, 1)}, 2, false},
		{"by steps", prompter{steps: 10}, []happens{step(1, 0), step(11, 1)}, 2, true},
		{"resumed at a multiple", prompter{steps: 10}, []happens{step(11, 0)}, 2, false},
		{"saved the multiple itself", prompter{steps: 10}, []happens{step(1, 0), saves(10, 1), step(12, 1)}, 2, false},
		{"asked for the multiple", prompter{steps: 10}, []happens{step(1, 0), step(10, 1), asked(1), step(19, 2)}, 2, false},
		{"the next multiple", prompter{steps: 10}, []happens{step(1, 0), step(10, 1), asked(1), step(20, 2)}, 2, true},
		{"share, too soon", prompter{every: s, budget: trainerd.SaveBudget{MaxShare: .1}},
			[]happens{step(1, 0), asked(1), saves(1, 3), step(2, 4)}, 20, false}, // 2 s each 20
		{"share", prompter{every: s, budget: trainerd.SaveBudget{MaxShare: .1}},
			[]happens{step(1, 0), asked(1), saves(1, 3), step(2, 4)}, 21, true},
		{"share by steps", prompter{steps: 1, budget: trainerd.SaveBudget{MaxShare: .1}},
			[]happens{step(1, 0), asked(1), saves(1, 3), step(2, 4)}, 20, false},
		{"risk alone", prompter{budget: trainerd.SaveBudget{MaxRisk: 30 * s}}, []happens{step(1, 0)}, 30, true},
		{"risk less the time of a save", prompter{budget: trainerd.SaveBudget{MaxRisk: 30 * s}},
			[]happens{step(1, 0), asked(1), saves(1, 6), step(2, 7)}, 26, true}, // 25 s after 1
		{"risk, not yet", prompter{budget: trainerd.SaveBudget{MaxRisk: 30 * s}},
			[]happens{step(1, 0), asked(1), saves(1, 6), step(2, 7)}, 25, false},
		{"risk that cannot be had, too soon", prompter{budget: trainerd.SaveBudget{MaxRisk: 3 * s}},
			[]happens{step(1, 0), asked(1), saves(1, 6), step(2, 7)}, 10, false}, // 5 s each 10
		{"risk that cannot be had", prompter{budget: trainerd.SaveBudget{MaxRisk: 3 * s}},
			[]happens{step(1, 0), asked(1), saves(1, 6), step(2, 7)}, 11, true},
		{"nothing asks", prompter{}, []happens{step(1, 0), step(1000, 1)}, 1e6, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := tt.p
			p.begin()
			for _, h := range tt.story {
				h(&p)
			}
			if got := p.due(at(tt.at)); got != tt.want {
				t.Errorf("due after %v s: %v, want %v", tt.at, got, tt.want)
			}
		})
	}
}

// A limit of the work at risk that saves are too slow for is reported once.
func TestRiskNotKept(t *testing.T) {
	for limit, want := range map[time.Duration]int{0: 0, 3 * time.Second: 1, 5 * time.Second: 0} {
		log := new(bytes.Buffer)
		r := &run{log: slog.New(slog.NewTextHandler(log, nil)), prompter: prompter{budget: trainerd.SaveBudget{MaxRisk: limit}, took: 5 * time.Second}}
		r.warnRisk()
		r.warnRisk()
		if n := strings.Count(log.String(), "the program takes so long to save"); n != want {
			t.Errorf("with a limit of %v: reported %d times, want %d", limit, n, want)
		}
	}
}
