//go:build unix

package world

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainerd/trainerd/ckptfmt/retention"
	"github.com/trainerd/trainerd/trainerd"
	"github.com/trainerd/trainerd/trainerd/checkpoint"
)

// options sets each option of a Supervisor and its Saver to some valid value.
// What an option may not change is judged by the rules.
var options = map[string]func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor){
	"SaveModelEvery": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.SaveModelEvery = p.during(rnd, 100)
	},
	"SaveModelSteps": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.SaveModelSteps = 1 + rnd.Int64N(50)
		if rnd.IntN(2) == 0 {
			sv.SaveModelEvery = -1
		}
	},
	"SaveBudget": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.SaveBudget = trainerd.SaveBudget{MaxShare: 0.01 + rnd.Float64()/2, MaxRisk: p.during(rnd, 100)}
	},
	"CheckpointBasename": func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) { sv.CheckpointBasename = "weights" },
	"SaveSummariesEvery": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.SaveSummariesEvery = []time.Duration{-1, p.during(rnd, 100)}[rnd.IntN(2)]
	},
	"StopGrace": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.StopGrace = between(rnd, 20*time.Minute, 10*time.Hour)
	},
	"SaveGrace": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.SaveGrace = between(rnd, 20*time.Minute, 10*time.Hour)
	},
	"NoReport": func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) { sv.NoReport = true },
	"Retention": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.Saver.Retention = []retention.Policy{
			retention.Last(1 + rnd.IntN(3)), retention.Every(p.during(rnd, 1000)), retention.Best{Metric: "loss"},
		}[:1+rnd.IntN(3)]
	},
	"MaxToKeep": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.Saver.MaxToKeep = []int{-1, 1, 2, 3}[rnd.IntN(4)]
	},
	"KeepEvery": func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) {
		sv.Saver.KeepEvery = p.during(rnd, 1000)
	},
	"Format":     func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) { sv.Saver.Format = checkpoint.FormatV1 },
	"Shards":     func(rnd *rand.Rand, p *plan, sv *trainerd.Supervisor) { sv.Saver.Shards = 1 + rnd.IntN(4) },
	"PadStep":    func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) { sv.Saver.PadStep = true },
	"NoManifest": func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) { sv.Saver.NoManifest = true },
	"ConfigHash": func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) { sv.Saver.ConfigHash = "abc" },
	"AbsolutePaths": func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) {
		sv.Saver.AbsolutePaths = true
	},
	"LatestFilename": func(_ *rand.Rand, _ *plan, sv *trainerd.Supervisor) { sv.Saver.LatestFilename = "newest" },
}

// fixed are the options that a history sets itself, or that have no place here,
// and why.
var fixed = map[string]string{
	"MetaGraph": "of the job", "Open": "the job has NewSession", "Master": "the job has NewSession", "NewSession": "of the job",
	"Logdir": "of the history", "NonChief": "a worker has no checkpoints", "InitOp": "of the job", "InitFeeds": "of the job", "InitFunc": "of the job",
	"LocalInitOp": "of the job", "LocalInitTimeout": "of servers", "ReadyForLocalInitOp": "of workers", "ReadyOp": "of the job",
	"SummaryOp": "of the job", "GlobalStep": "of the job", "Saver": "of the history, with the options of Saver", "NoSaver": "there would be nothing to judge",
	"MaxSaveFailures": "of the history: a disk that fails for long must not end a life before its time", "OnSave": "of the history: the announcements",
	"OnRelock":       "of programs that keep files in the logdir",
	"FlushSummaries": "of servers",
	"Listeners":      "OnSave is one", "SummaryWriter": "of the history, on its disk", "NoSummaryWriter": "there would be no curve",
	"KeepSummaryWriter": "of programs with a writer of their own", "StartAtRestoredStep": "drops a point by design, as TensorFlow does",
	"SessionManager": "made from the options", "RecoveryWait": "of workers", "MaxWait": "of workers", "WaitForCheckpoint": "of evaluators",
	"Adopt": "of servers", "BeforeRestore": "of servers", "OnWait": "of workers", "Services": "of the history: those who look on", "Hooks": "of programs",
	"NoStandardServices": "there would be no saves by time", "MaxRestarts": "of the history: lost sessions", "MaxRewinds": "of the event NaN",
	"OnRewind": "of the history: what a rewind takes back", "Logger": "of the history",
	"Variables": "of the job", "AllowEmpty": "of programs without variables", "Reshape": "of warm starts", "Def": "of the job", "FS": "of the history",
}

func TestEveryOptionHasItsLine(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[trainerd.Supervisor](), reflect.TypeFor[checkpoint.Saver]()} {
		for field := range of.Fields() {
			_, chosen := options[field.Name]
			if why := fixed[field.Name]; field.IsExported() && chosen == (why != "") {
				t.Errorf("%s.%s belongs to either options or fixed", of, field.Name)
			}
		}
	}
	for name, why := range fixed {
		if strings.TrimSpace(why) == "" {
			t.Errorf("%s is fixed without a reason", name)
		}
	}
}

// supervisor returns a Supervisor with the options of the plan.
func (p *plan) supervisor() *trainerd.Supervisor {
	sv := &trainerd.Supervisor{Saver: new(checkpoint.Saver), MaxSaveFailures: -1}
	for name, set := range options {
		if p.options[name] {
			set(p.source("option "+name), p, sv)
		}
	}
	return sv
}
