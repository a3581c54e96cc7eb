//go:build unix

package world

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/trainerd/daemon/config"
)

// A clusterPlan is all that happens in a history of a job on servers. What of its
// config is not about clusters is drawn as for other jobs.
type clusterPlan struct {
	daemonPlan
	ps, workers int
	latency     time.Duration // of the network, at most
}

// clusterOptions are the keys of clusters, and those of the Supervisor that matter
// there, which may differ from their default.
var clusterOptions = map[string]func(rnd *rand.Rand, p *clusterPlan, set func(key, format string, args ...any)){
	"cluster.sync": func(_ *rand.Rand, _ *clusterPlan, set func(string, string, ...any)) { set("cluster.sync", "true") },
	"cluster.replicas_to_aggregate": func(rnd *rand.Rand, p *clusterPlan, set func(string, string, ...any)) {
		if p.options["cluster.sync"] {
			set("cluster.replicas_to_aggregate", "%d", 1+rnd.IntN(p.workers+1))
		}
	},
	"cluster.checkpoint_via": func(_ *rand.Rand, _ *clusterPlan, set func(string, string, ...any)) {
		set("cluster.checkpoint_via", `"client"`)
	},
	"cluster.patience_secs": func(rnd *rand.Rand, _ *clusterPlan, set func(string, string, ...any)) {
		set("cluster.patience_secs", "%d", []int{0, 1800 + rnd.IntN(7200)}[rnd.IntN(2)])
	},
	"supervisor.stop_grace_secs": func(rnd *rand.Rand, p *clusterPlan, set func(string, string, ...any)) {
		set("supervisor.stop_grace_secs", "%d", max(60+rnd.IntN(600), 3*int(p.stepTime.Seconds())))
	},
}

// clusterFixed are keys of clusters that have no place here, and why.
var clusterFixed = map[string]string{
	"cluster.ps_tasks": "of the plan", "cluster.workers": "of the plan", "cluster.task": "of the process", "master": "of the process", "supervisor.is_chief": "of the process",
	"cluster.listen": servedHere, "cluster.listen_public": servedHere, "cluster.listen_files": servedHere,
	"cluster.tls": encrypted, "cluster.tls_server_name": encrypted, "cluster.tls_ca": encrypted, "cluster.tls_cert": encrypted, "cluster.tls_key": encrypted,
}

const (
	servedHere = `of the master "local": trainerd/daemon`
	encrypted  = "of proxies: trainerd/daemon"
)

// notOnServers are options of jobs that are left out, and why.
var notOnServers = map[string]string{
	"train.epochs": "train.steps is of the plan", "warm_start.from": "needs a training before this one",
	"train.early_stopping": "which step is the last depends on who is quicker",
	"model.learning_rate":  "of the plan",
	"train.memory_mb":      "not of this process",
}

// Most histories have the longest steps: they cost little more than short ones.
func newClusterPlan(seed uint64) *clusterPlan {
	p := laterClusterPlan(seed)
	p.pairUp(p.source("pairs"), slices.Concat(clusterEvents, laterClusterEvents))
	return p
}

// laterClusterPlan is newClusterPlan as it was before any two things happened at once.
func laterClusterPlan(seed uint64) *clusterPlan {
	return drawClusterPlan(seed, 40*time.Second, slices.Concat(clusterEvents, laterClusterEvents))
}

// firstClusterPlan is that as it was when the first defects were found.
func firstClusterPlan(seed uint64) *clusterPlan {
	return drawClusterPlan(seed, 8*time.Second, clusterEvents)
}

func drawClusterPlan(seed uint64, longest time.Duration, events []*event) *clusterPlan {
	all := map[string]bool{}
	for _, names := range []map[string]setter{daemonOptions, daemonShapes} {
		for name := range names {
			all[name] = notOnServers[name] == ""
		}
	}
	maps.DeleteFunc(all, func(_ string, taken bool) bool { return !taken })
	for name := range clusterOptions {
		all[name] = true
	}
	p := &clusterPlan{}
	p.choices = choose(seed, all)
	rnd := p.source("cluster plan")
	var families []*daemonKind
	for _, k := range daemonKinds {
		if k.family {
			families = append(families, k)
		}
	}
	p.kind = families[rnd.IntN(len(families))]
	p.stepTime = between(rnd, 20*time.Millisecond, longest)
	p.ps, p.workers = 1+rnd.IntN(2), 1+rnd.IntN(3)
	p.latency = []time.Duration{0, time.Millisecond, 300 * time.Millisecond}[rnd.IntN(3)]
	p.disturb(rnd, events)
	return p
}

// clusterKeys returns the keys of the config of a task; of all tasks but is_chief,
// master and task.
func (p *clusterPlan) clusterKeys(task int) map[string]string {
	keys := p.keys(true)
	set := func(key, format string, args ...any) { keys[key] = fmt.Sprintf(format, args...) }
	delete(keys, "train.epochs")
	set("train.steps", "%d", p.lastStep())
	set("cluster.ps_tasks", "%d", p.ps)
	set("cluster.workers", "%d", p.workers)
	set("cluster.task", "%d", task)
	set("master", `"grpc://worker%d:2222"`, task)
	set("supervisor.is_chief", "%v", task == 0)
	if keys["model.learning_rate"] == "" || p.workers > 1 { // else some diverge
		set("model.learning_rate", "0.0006")
	}
	delete(keys, "supervisor.stop_grace_secs")
	for _, name := range slices.Sorted(maps.Keys(clusterOptions)) {
		if p.options[name] {
			clusterOptions[name](p.source("option "+name), p, set)
		}
	}
	if keys["cluster.checkpoint_via"] == "" {
		delete(keys, "supervisor.write_version") // the servers write V2, into files of their choice
		delete(keys, "supervisor.shards")
	}
	return keys
}

func (p *clusterPlan) lastStep() int64 { return 25 + p.source("steps").Int64N(60) }

func (p *clusterPlan) smaller() []*clusterPlan {
	var all []*clusterPlan
	for _, c := range p.choices.smaller() {
		q := *p
		q.choices = c
		all = append(all, &q)
	}
	return all
}

func (p *clusterPlan) keepOnly(words []string) *clusterPlan {
	q := *p
	q.choices = p.keep(words)
	return &q
}

func (p *clusterPlan) String() string {
	return fmt.Sprintf("seed %d: %s on %d parameter servers and %d workers, steps of %v, latency %v; options %s; what happens:%s\n%s",
		p.seed, p.kind.name, p.ps, p.workers, p.stepTime, p.latency, strings.Join(p.chosen(), " "), p.events(), tomlOf(p.clusterKeys(0), "LOGDIR"))
}

func TestEveryKeyOfClustersIsDrawn(t *testing.T) {
	drawn := map[string]bool{}
	file := filepath.Join(t.TempDir(), "job.toml")
	for seed := range uint64(400) {
		p := newClusterPlan(seed)
		for name := range clusterOptions {
			if p.clusterKeys(0)[name] != "" {
				drawn[name] = true
			}
		}
		if seed > 100 {
			continue
		}
		if err := os.WriteFile(file, []byte(tomlOf(p.clusterKeys(p.workers-1), "logs")), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(file, nil); err != nil {
			t.Fatalf("a config that should be valid is not: %v\n%v", err, p)
		}
	}
	for _, key := range keysOf(reflect.TypeFor[config.Config](), "") {
		if (strings.HasPrefix(key, "cluster.") || clusterFixed[key] != "") && drawn[key] == (clusterFixed[key] != "") {
			t.Errorf("%s is to be drawn by clusterOptions, or to have its reason in clusterFixed, got drawn=%v", key, drawn[key])
		}
	}
}
