//go:build unix

package world

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// A childSetter sets keys of the config of a program to some valid value, in TOML.
type childSetter func(rnd *rand.Rand, p *childPlan, set func(key, format string, args ...any))

// childOptions are what may differ from its default, by the key that each is about.
var childOptions = map[string]childSetter{
	"name": func(_ *rand.Rand, _ *childPlan, set func(string, string, ...any)) { set("name", "%q", "a program") },
	"child.env": func(_ *rand.Rand, _ *childPlan, set func(string, string, ...any)) {
		set("child.env", "%s", `{ A = "b" }`)
	},
	"child.keep_best": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		if p.way != nil && !p.plain {
			set("child.metric", "%q", "val/metric")
			set("child.mode", "%q", []string{"min", "max"}[rnd.IntN(2)])
			set("child.keep_best", "%d", rnd.IntN(4))
		}
	},
	"child.max_rewinds": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		if p.way != nil {
			set("child.max_rewinds", "%d", 1+rnd.IntN(3))
		}
	},
	"child.loss":   func(_ *rand.Rand, _ *childPlan, set func(string, string, ...any)) { set("child.loss", "%q", "loss") },
	"child.recipe": func(_ *rand.Rand, _ *childPlan, set func(string, string, ...any)) { set("child.recipe", "%q", "plain") },
	"child.resume_args": func(_ *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		if p.way != nil {
			set("child.resume_args", "%s", `["--resume", "{checkpoint}", "--step={step}"]`)
		}
	},
	"child.max_restarts": func(rnd *rand.Rand, _ *childPlan, set func(string, string, ...any)) {
		set("child.max_restarts", "%d", rnd.IntN(12))
	},
	"child.restart_window_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		set("child.restart_window_secs", "%v", p.during(rnd, 100).Seconds())
	},
	"child.backoff_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		set("child.backoff_secs", "%v", p.during(rnd, 10).Seconds())
	},
	"child.max_backoff_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		set("child.max_backoff_secs", "%v", p.during(rnd, 50).Seconds())
	},
	"child.hang_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		longest := p.loadTime + 3*p.stepTime + 20*p.saveTime // a save may be due, and be asked for
		if p.nodes > 1 {
			longest += joinTime
		}
		set("child.hang_secs", "%v", (2*longest + p.during(rnd, 20)).Seconds())
	},
	"supervisor.save_model_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		if p.signal != "" {
			set("supervisor.save_model_secs", "%v", p.during(rnd, 50).Seconds())
		}
	},
	"supervisor.save_model_steps": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		if p.signal != "" {
			set("supervisor.save_model_steps", "%d", 1+rnd.IntN(20))
		}
	},
	"supervisor.max_save_share": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		if p.signal != "" && (p.options["supervisor.save_model_secs"] || p.options["supervisor.save_model_steps"]) {
			set("supervisor.max_save_share", "%v", rnd.Float64())
		}
	},
	"supervisor.max_risk_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		if p.signal != "" {
			set("supervisor.max_risk_secs", "%v", p.during(rnd, 100).Seconds())
		}
	},
	"supervisor.save_summaries_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		set("supervisor.save_summaries_secs", "%v", []float64{0, p.during(rnd, 50).Seconds()}[rnd.IntN(2)])
	},
	"supervisor.stop_grace_secs": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		set("supervisor.stop_grace_secs", "%v", p.during(rnd, 50).Seconds())
	},
	"supervisor.max_to_keep": func(rnd *rand.Rand, _ *childPlan, set func(string, string, ...any)) {
		set("supervisor.max_to_keep", "%d", rnd.IntN(4))
	},
	"supervisor.keep_checkpoint_every_n_hours": func(rnd *rand.Rand, p *childPlan, set func(string, string, ...any)) {
		set("supervisor.keep_checkpoint_every_n_hours", "%v", p.during(rnd, 100).Hours())
	},
	"supervisor.keep_steps": func(rnd *rand.Rand, _ *childPlan, set func(string, string, ...any)) {
		set("supervisor.keep_steps", "[%d, %d]", rnd.IntN(40), rnd.IntN(40))
	},
}

// childFixed are keys of [child] that have no place here, and why.
var childFixed = map[string]string{
	"child.dir": "of real programs",
}

func TestEveryKeyOfProgramsIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	file := filepath.Join(t.TempDir(), "job.toml")
	for seed := range uint64(400) {
		p := newChildPlan(seed)
		for key := range p.keys(p.nodes - 1) {
			drawn[key] = true
		}
		if seed > 30 {
			continue
		}
		if err := os.WriteFile(file, []byte(tomlOf(p.keys(p.nodes-1), "logs")), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(file, nil); err != nil {
			t.Fatalf("a config that should be valid is not: %v\n%v", err, p)
		}
	}
	for _, key := range keysOf(reflect.TypeFor[config.Config](), "") {
		if strings.HasPrefix(key, "child.") && drawn[key] == (childFixed[key] != "") {
			t.Errorf("%s is to be drawn by childOptions, or to have its reason in childFixed, got drawn=%v", key, drawn[key])
		}
	}
}
