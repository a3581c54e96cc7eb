//go:build unix

package world

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainerd/trainerd/internal/atomicfile"
)

var (
	writeTo = flag.String("write", "", "write the job of -seed into this folder, for real processes, and run nothing")
	kind    = flag.String("kind", "job", "what -write writes: job, program or cluster")
)

// Real processes make steps of a millisecond, and write some fifty points and
// checkpoints, as the simulated ones do: what counts steps is multiplied.
const stepsPerStep = 3000

var inSteps = []string{
	"train.steps", "train.epochs", "train.eval_steps", "eval.steps", "supervisor.save_model_steps", "supervisor.save_summaries_steps", "supervisor.keep_steps",
}

var number = regexp.MustCompile(`[0-9.]+`)

// scaleSteps multiplies what counts steps.
func scaleSteps(keys map[string]string) map[string]string {
	for _, key := range inSteps {
		if value, ok := keys[key]; ok {
			keys[key] = number.ReplaceAllStringFunc(value, func(text string) string {
				n, _ := strconv.ParseFloat(text, 64)
				return strconv.FormatFloat(n*stepsPerStep, 'f', -1, 64)
			})
		}
	}
	return keys
}

// A realJob is what interop/soak has to know of a job, next to its configs.
type realJob struct {
	Kind    string `json:"kind"` // of model, or way of saving
	Pattern string `json:"pattern,omitempty"`
	Steps   int64  `json:"steps,omitempty"` // of a program
	Polite  bool   `json:"polite,omitempty"`
	PS      int    `json:"ps,omitempty"`
	Workers int    `json:"workers,omitempty"`
}

// TestWriteJob writes the config of a seed as job.toml, for real processes; as
// plain.toml without the options that must not change a bit of the weights; and what
// both read.
func TestWriteJob(t *testing.T) {
	if *writeTo == "" {
		t.Skip("is for interop/soak")
	}
	about, err := map[string]func(t *testing.T, seed uint64, dir string) (realJob, error){
		"job": writeJob, "program": writeProgram, "cluster": writeCluster,
	}[*kind](t, *oneSeed, *writeTo)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(about)
	if err == nil {
		err = os.WriteFile(filepath.Join(*writeTo, "about.json"), text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeJob(t *testing.T, seed uint64, dir string) (realJob, error) {
	p := newDaemonPlan(seed)
	p.stepTime = 20 * time.Millisecond
	if err := p.kind.lay(dir); err != nil {
		return realJob{}, err
	}
	plain, all := p.keys(false), p.keys(true)
	if plain["warm_start.from"] != "" {
		if err := p.trainWarm(t.Context(), dir, plain); err != nil {
			return realJob{}, err
		}
	}
	return realJob{Kind: p.kind.name}, writeConfigs(dir, scaleSteps(plain), scaleSteps(all))
}

func writeConfigs(dir string, plain, all map[string]string) error {
	for name, keys := range map[string]map[string]string{"plain.toml": plain, "job.toml": all} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(tomlOf(keys, "logdir")), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func writeCluster(_ *testing.T, seed uint64, dir string) (realJob, error) {
	p := newClusterPlan(seed)
	p.stepTime = 20 * time.Millisecond
	if err := p.kind.lay(dir); err != nil {
		return realJob{}, err
	}
	keys := p.clusterKeys(0)
	return realJob{Kind: p.kind.name, PS: p.ps, Workers: p.workers}, writeConfigs(dir, keys, keys)
}

// realChildPlan is the plan of a program as a real process, which is quicker.
func realChildPlan(seed uint64) *childPlan {
	p := loudChildPlan(seed)
	p.team = oneNode
	rnd := p.source("real")
	p.steps *= 3
	p.stepTime = between(rnd, 5*time.Millisecond, 50*time.Millisecond)
	p.saveTime = between(rnd, time.Millisecond, 20*time.Millisecond)
	p.loadTime = between(rnd, time.Millisecond, 500*time.Millisecond)
	return p
}

// longestSilence is how long a program may be silent on a busy machine, in seconds.
const longestSilence = 30

func writeProgram(_ *testing.T, seed uint64, dir string) (realJob, error) {
	self, err := os.Executable()
	if err != nil {
		return realJob{}, err
	}
	p := realChildPlan(seed)
	keys := p.keys(0)
	keys["child.command"] = fmt.Sprintf(`[%q, "-test.run=^TestProgram$", "-seed=%d", "-program", "--", "--train"]`, self, seed)
	if keys["child.hang_secs"] != "" {
		keys["child.hang_secs"] = strconv.Itoa(longestSilence)
	}
	about := realJob{Kind: "nothing", Steps: p.steps, Polite: p.manners == polite}
	if p.way != nil {
		about.Kind, about.Pattern = p.way.name, p.way.pattern
	}
	return about, writeConfigs(dir, keys, keys)
}

var asProgram = flag.Bool("program", false, "be the program of -seed")

// TestProgram is the program of a plan as a real process.
func TestProgram(t *testing.T) {
	if !*asProgram {
		t.Skip("is for interop/soak")
	}
	p := newRealProgram(*oneSeed)
	signals := make(chan os.Signal, 10)
	if wanted := p.signals(); len(wanted) > 0 {
		signal.Notify(signals, wanted...)
	}
	at := &process{machine: p.host, killed: make(chan struct{}), inbox: make(chan syscall.Signal, 10)}
	go func() {
		for s := range signals {
			at.inbox <- s.(syscall.Signal)
		}
	}()
	code, _ := p.run(at)
	if p.broken != nil {
		slog.Error("the program", "broken", p.broken)
		code = 1
	}
	os.Exit(code)
}

func newRealProgram(seed uint64) *program {
	plan := realChildPlan(seed)
	h := &childHistory{
		place: &place{dir: os.Getenv("TRAINERD_LOGDIR")}, plan: plan, keys: plan.keys(0), kept: map[int64]bool{},
	}
	l := &childLife{childHistory: h, life: life{event: &event{}}, when: plan.steps + 1}
	n := &childNode{childLife: l, host: &machine{disk: atomicfile.OrOS(nil)}}
	p := &program{childNode: n, args: flag.Args(), env: map[string]string{}, lines: os.Stdout}
	for _, variable := range os.Environ() {
		key, value, _ := strings.Cut(variable, "=")
		p.env[key] = value
	}
	return p
}

// signals are those that the program catches.
func (p *program) signals() []os.Signal {
	all := []os.Signal{syscall.SIGTERM, syscall.SIGUSR1}
	return slices.DeleteFunc(all, func(s os.Signal) bool {
		return s == syscall.SIGTERM && p.plan.manners == rude || s == syscall.SIGUSR1 && p.plan.signal == ""
	})
}
