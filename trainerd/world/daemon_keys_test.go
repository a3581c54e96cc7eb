//go:build unix

package world

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
	"github.com/trainerd/trainerd/trainerd/model"
)

// A setter sets keys of a job's config to some valid value, in TOML.
type setter func(rnd *rand.Rand, p *daemonPlan, set func(key, format string, args ...any))

// daemonOptions are what must not change a bit of the weights, by the key that each
// is about.
var daemonOptions = map[string]setter{
	"name": func(_ *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) { set("name", "%q", "a job") },
	"data.memory_mb": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.data != nil {
			set("data.memory_mb", "%d", 1+rnd.IntN(64))
		}
	},
	"train.memory_mb": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("train.memory_mb", "%d", 16+rnd.IntN(1024))
	},
	"data.keep_statistics": func(_ *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.family {
			set("data.keep_statistics", "true")
		}
	},
	"eval.secs": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.evaluates() && !p.options["train.early_stopping"] {
			set("eval.secs", "%v", p.during(rnd, 30).Seconds())
		}
	},
	"eval.steps": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.evaluates() && !p.options["train.early_stopping"] {
			set([]string{"eval.steps", "train.eval_steps"}[rnd.IntN(2)], "%d", 1+rnd.IntN(12))
		}
	},
	"eval.keep_best": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.evaluates() {
			set("eval.keep_best", "%d", rnd.IntN(4))
		}
	},
	"supervisor.save_model_secs": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		secs := p.during(rnd, 50).Seconds()
		if p.options["supervisor.save_model_steps"] && rnd.IntN(3) == 0 {
			secs = 0
		}
		set("supervisor.save_model_secs", "%v", secs)
	},
	"supervisor.save_model_steps": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.save_model_steps", "%d", 1+rnd.IntN(20))
	},
	"supervisor.save_summaries_secs": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.save_summaries_secs", "%v", []float64{0, p.during(rnd, 50).Seconds()}[rnd.IntN(2)])
	},
	"supervisor.save_summaries_steps": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.save_summaries_steps", "%d", 1+rnd.IntN(10))
	},
	"supervisor.recovery_wait_secs": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.recovery_wait_secs", "%d", rnd.IntN(100))
	},
	"supervisor.checkpoint_basename": func(_ *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.checkpoint_basename", "%q", "weights")
	},
	"supervisor.max_to_keep": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.max_to_keep", "%d", rnd.IntN(4))
	},
	"supervisor.keep_checkpoint_every_n_hours": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.keep_checkpoint_every_n_hours", "%v", p.during(rnd, 100).Hours())
	},
	"supervisor.keep_steps": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.keep_steps", "[%d, %d]", rnd.IntN(40), rnd.IntN(40))
	},
	"supervisor.max_save_share": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.max_save_share", "%v", rnd.Float64())
	},
	"supervisor.max_risk_secs": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.max_risk_secs", "%v", p.during(rnd, 100).Seconds())
	},
	"supervisor.write_version": func(_ *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.write_version", "%q", "V1")
	},
	"supervisor.shards": func(rnd *rand.Rand, _ *daemonPlan, set func(string, string, ...any)) {
		set("supervisor.shards", "%d", 1+rnd.IntN(3))
	},
}

// daemonShapes are the keys that decide what is trained, or how far, and may differ
// from their default.
var daemonShapes = map[string]setter{
	"data.batch_size": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.data != nil {
			set("data.batch_size", "%d", 1+rnd.IntN(9))
		}
	},
	"data.seed": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.data != nil {
			set("data.seed", "%d", rnd.IntN(1000))
		}
	},
	"data.shuffle": func(_ *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.data != nil {
			set("data.shuffle", "false")
		}
	},
	"data.shuffle_buffer": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.format == "tfrecord" {
			set("data.shuffle_buffer", "%d", 2+rnd.IntN(20))
		}
	},
	"data.normalize": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		switch {
		case !p.kind.family || p.kind.name == "embedding_bag":
		case rnd.IntN(3) == 0:
			set("data.scale", "2.5")
		default:
			set("data.normalize", "%q", []string{"standard", "minmax"}[rnd.IntN(2)])
		}
	},
	"data.test_fraction": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.evaluates() {
			if rnd.IntN(2) == 0 {
				set("data.test_rows", "%d", 1+rnd.IntN(12))
			} else {
				set("data.test_fraction", "%v", 0.1+rnd.Float64()/2)
			}
			set("eval.batch_size", "%d", 1+rnd.IntN(20))
		}
	},
	"eval.metric": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.evaluates() {
			set("eval.metric", "%q", "loss")
			set("eval.mode", "%q", []string{"min", "max"}[rnd.IntN(2)])
		}
	},
	"train.epochs": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		switch {
		case p.kind.data == nil:
		case p.options["train.epochs"]:
			set("train.epochs", "%v", 0.5+3*rnd.Float64())
		default:
			set("train.steps", "%d", 5+rnd.IntN(45))
		}
	},
	"train.early_stopping": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.evaluates() {
			set("train.early_stopping", "%d", 1+rnd.IntN(3))
			set("eval.steps", "%d", 1+rnd.IntN(5))
		}
	},
	"warm_start.from": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if !p.kind.family {
			return
		}
		set("warm_start.from", "%q", warmDir)
		set("warm_start.missing", "%q", "init")
		if rnd.IntN(2) == 0 {
			set([]string{"warm_start.include", "warm_start.exclude"}[rnd.IntN(2)], `[%q]`, "bias")
		}
		if rnd.IntN(4) == 0 {
			set("warm_start.reshape", "true")
		}
	},
	"model.seed": ofFamily(func(rnd *rand.Rand, set func(string, string, ...any)) { set("model.seed", "%d", 1+rnd.IntN(1000)) }),
	"model.l2":   ofFamily(func(rnd *rand.Rand, set func(string, string, ...any)) { set("model.l2", "%v", rnd.Float64()/10) }),
	"model.initializer": ofFamily(func(rnd *rand.Rand, set func(string, string, ...any)) {
		set("model.initializer", "%q", model.Initializers[rnd.IntN(len(model.Initializers))])
	}),
	"model.activation": ofLayers(func(rnd *rand.Rand, set func(string, string, ...any)) {
		set("model.activation", "%q", model.Activations[rnd.IntN(len(model.Activations))])
	}),
	"model.dropout": ofLayers(func(rnd *rand.Rand, set func(string, string, ...any)) { set("model.dropout", "%v", rnd.Float64()/2) }),
	"model.batch_norm": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.normalises {
			set("model.batch_norm", "true")
			set("model.batch_norm_momentum", "%v", 0.5+rnd.Float64()/3)
		}
	},
	"model.wide": func(_ *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if strings.HasPrefix(p.kind.name, "mlp") {
			set("model.wide", "true")
		}
	},
	"data.weight": func(_ *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.family && p.kind.format == "csv" && p.kind.keys["model.image"] == "" && p.kind.keys["model.vocabulary"] == "" {
			set("data.weight", "0") // the first column
		}
	},
	"model.combiner": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.name == "embedding_bag" {
			set("model.combiner", "%q", model.Combiners[rnd.IntN(2)])
		}
	},
	"model.loss": func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.predictsNumber() {
			set("model.loss", `"huber_loss"`)
			if rnd.IntN(2) == 0 {
				set("model.huber_delta", "%v", 0.1+rnd.Float64())
			}
		}
	},
	"model.optimizer":    ofFamily(setOptimizer),
	"model.schedule":     ofFamily(setSchedule),
	"model.warmup_steps": ofFamily(func(rnd *rand.Rand, set func(string, string, ...any)) { set("model.warmup_steps", "%d", rnd.IntN(20)) }),
}

// ofFamily is a setter for the model families.
func ofFamily(f func(rnd *rand.Rand, set func(string, string, ...any))) setter {
	return func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.family {
			f(rnd, set)
		}
	}
}

// ofLayers is a setter for the families with hidden layers.
func ofLayers(f func(rnd *rand.Rand, set func(string, string, ...any))) setter {
	return func(rnd *rand.Rand, p *daemonPlan, set func(string, string, ...any)) {
		if p.kind.layers {
			f(rnd, set)
		}
	}
}

func setOptimizer(rnd *rand.Rand, set func(string, string, ...any)) {
	name := model.Optimizers[rnd.IntN(len(model.Optimizers))]
	set("model.optimizer", "%q", name)
	set("model.learning_rate", "%v", 0.001+rnd.Float64()/100)
	of := map[string][]string{
		"momentum": {"momentum"}, "nesterov": {"momentum"}, "rmsprop": {"rho", "epsilon", "momentum"}, "adadelta": {"rho", "epsilon"},
		"adam": {"beta1", "beta2", "epsilon"}, "adagrad": {"initial_accumulator"}, "ftrl": {"initial_accumulator", "ftrl_l1", "ftrl_l2"},
	}
	for _, key := range of[name] {
		if rnd.IntN(2) == 0 {
			set("model."+key, "%v", 0.1+rnd.Float64()/2)
		}
	}
	if name == "ftrl" && rnd.IntN(2) == 0 {
		set("model.learning_rate_power", "-0.4")
	}
	if name == "momentum" && rnd.IntN(2) == 0 {
		set("model.nesterov", "true")
	}
}

func setSchedule(rnd *rand.Rand, set func(string, string, ...any)) {
	name := model.Schedules[1+rnd.IntN(len(model.Schedules)-1)]
	set("model.schedule", "%q", name)
	if name == "piecewise" {
		set("model.boundaries", "[5, %d]", 6+rnd.IntN(20))
		set("model.rates", "[0.01, 0.005, %v]", 0.001+rnd.Float64()/1000)
		return
	}
	set("model.decay_steps", "%d", 5+rnd.IntN(50))
	switch name {
	case "cosine": // ftrl divides by the rate
		set("model.end_learning_rate", "0.0005")
	case "exponential", "inverse_time":
		set("model.decay_rate", "%v", 0.5+rnd.Float64()/3)
		set("model.staircase", strconv.FormatBool(rnd.IntN(2) == 0))
	case "polynomial":
		set("model.power", "%v", 0.5+rnd.Float64())
		set("model.end_learning_rate", "0.0005")
	}
}

// daemonFixed are keys that have no place here, or are set by each history itself,
// and why; of tables where that is so as a whole by "TABLE.".
var daemonFixed = map[string]string{
	"logdir": "of the history", "master": "a world of its own: clusters", "cluster.": "a world of its own: clusters", "child.": "a world of its own: childOptions",
	"supervisor.is_chief": "of clusters", "data.separator": format, "data.header": format, "data.header_rows": format, "data.quote": format, "data.comment": format,
	"data.skip_lines": format, "data.encoding": format, "data.decimal": format, "data.thousands": format, "data.labels": format, "data.features": format,
	"data.class_weights": format, "data.group": format, "data.drop": format, "data.categories": format, "data.dates": format, "data.date_parts": format, "data.texts": format, "data.units": format, "data.na_values": format, "data.missing": format, "data.image": format,
	"data.test_file": format, "data.test_labels": format, "model.inputs": "known from the data", "model.classes": "known from the data",
	"graph.bundle": "recorded programs: trainerd/daemon", "graph.summary_op": "found in the graph",
	"graph.train_op": "found in the graph", "graph.init": "iterators with several initializers: trainerd/daemon/graphrun", "graph.fetches": "shown, not kept", "eval.fetches": "graph.loss by default",
	"warm_start.map": "needs a checkpoint with other names: trainerd/daemon", "warm_start.averages": "needs a checkpoint with averages: trainerd/daemon",
}

const format = "how files are read: trainerd/dataset"

// keysOf lists the keys of a config's struct.
func keysOf(t reflect.Type, table string) (keys []string) {
	for field := range t.Fields() {
		name := field.Tag.Get("toml")
		switch {
		case name == "":
		case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[config.Column]():
			keys = append(keys, keysOf(field.Type, table+name+".")...)
		default:
			keys = append(keys, table+name)
		}
	}
	return keys
}

func TestEveryKeyIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	file := filepath.Join(t.TempDir(), "job.toml")
	for seed := range uint64(2000) {
		p := newDaemonPlan(seed)
		for key := range p.keys(true) {
			drawn[key] = true
		}
		if seed > 300 {
			continue
		}
		if err := os.WriteFile(file, []byte(p.toml("logs", true)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(file, nil); err != nil {
			t.Fatalf("a config that should be valid is not: %v\n%v", err, p)
		}
	}
	for _, key := range keysOf(reflect.TypeFor[config.Config](), "") {
		table, _, _ := strings.Cut(key, ".")
		fixed := daemonFixed[key] != "" || daemonFixed[table+"."] != ""
		if drawn[key] == fixed {
			t.Errorf("%s is to be drawn by daemonOptions or daemonShapes, or to have its reason in daemonFixed, got drawn=%v fixed=%v", key, drawn[key], fixed)
		}
	}
}

// during returns a time in which at most so many steps are made.
func (p *daemonPlan) during(rnd *rand.Rand, steps int) time.Duration {
	return between(rnd, p.stepTime/2, time.Duration(steps)*p.stepTime).Round(time.Millisecond) + time.Millisecond
}

// evaluates reports whether the job has a test part.
func (p *daemonPlan) evaluates() bool { return p.kind.data != nil && p.options["data.test_fraction"] }

// String says what happens, for anyone who looks for the cause.
func (p *daemonPlan) String() string {
	return fmt.Sprintf("seed %d: %s, steps of %v; options %s; lives:%s\n%s", p.seed, p.kind.name, p.stepTime, strings.Join(p.chosen(), " "), p.events(), p.toml("LOGDIR", true))
}
