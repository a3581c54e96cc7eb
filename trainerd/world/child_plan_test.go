//go:build unix

package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A childPlan is all that happens in a history of a program under the daemon.
type childPlan struct {
	choices
	team
	way      *saving // nil for a program that saves nothing
	steps    int64
	stepTime time.Duration
	every    int64 // steps between two saves; 0 for those on request alone
	saveTime time.Duration
	loadTime time.Duration
	manners  int    // at SIGTERM
	termCode int    // its exit code then
	signal   string // that makes it save, "" for none
	picks    bool   // it looks for the newest checkpoint itself
	plain    bool   // its lines are sentences
	silent   bool   // it reports nothing
	second   secondName
}

// The manners of a program at SIGTERM.
const (
	polite = iota // it saves and ends
	quick         // it ends
	rude          // it knows no signal
)

func newChildPlan(seed uint64) *childPlan {
	p := loudChildPlan(seed)
	p.silence(p.source("silence"))
	return p
}

// loudChildPlan is newChildPlan as it was before programs reported nothing.
func loudChildPlan(seed uint64) *childPlan {
	p := namesChildPlan(seed)
	p.copyNewest(p.source("copies"))
	p.fillDisk(p.source("full disks"))
	return p
}

// namesChildPlan is loudChildPlan as it was before programs kept a copy of their newest checkpoint,
// and disks were full for hours.
func namesChildPlan(seed uint64) *childPlan {
	p := nodesChildPlan(seed)
	p.nameOtherwise(p.source("names"))
	return p
}

// nodesChildPlan is namesChildPlan as it was before names of checkpoints could count saves, and
// there were second ones.
func nodesChildPlan(seed uint64) *childPlan {
	p := laterChildPlan(seed)
	events := slices.Concat(childEvents, laterChildEvents)
	if p.spread(p.source("nodes")) {
		events = slices.Concat(events, nodeEvents, nodeEvents)
		p.lives = nil
		p.disturb(p.source("lives on nodes"), events)
	}
	p.pairUp(p.source("pairs"), events)
	return p
}

// laterChildPlan is nodesChildPlan as it was before there were several nodes, and two things
// happened at once.
func laterChildPlan(seed uint64) *childPlan {
	return drawChildPlan(seed, slices.Concat(childEvents, laterChildEvents))
}

// firstChildPlan is that as it was when the first defects were found.
func firstChildPlan(seed uint64) *childPlan { return drawChildPlan(seed, childEvents) }

func drawChildPlan(seed uint64, events []*event) *childPlan {
	p := &childPlan{choices: choose(seed, childOptions), team: oneNode}
	rnd := p.source("plan")
	if n := rnd.IntN(len(savings) + 1); n < len(savings) {
		p.way = savings[n]
	}
	p.steps = 10 + rnd.Int64N(60)
	p.stepTime = between(rnd, 100*time.Millisecond, time.Minute)
	p.every = 1 + rnd.Int64N(12)
	p.saveTime = between(rnd, time.Millisecond, 2*time.Second)
	p.loadTime = between(rnd, time.Millisecond, time.Minute)
	p.manners, p.termCode = rnd.IntN(3), []int{0, 75, 143, 1}[rnd.IntN(4)]
	p.picks = rnd.IntN(3) == 0 && p.way != nil && p.way.hasSteps()
	if p.way != nil && rnd.IntN(2) == 0 {
		p.signal = "SIGUSR1"
	}
	if p.signal != "" && rnd.IntN(3) == 0 {
		p.every = 0
	}
	p.plain = rnd.IntN(4) == 0
	p.disturb(rnd, events)
	return p
}

// keys returns the keys of the config of a node with their values in TOML.
func (p *childPlan) keys(node int) map[string]string {
	keys := map[string]string{"child.command": `["simulated", "--train"]`, "train.steps": fmt.Sprint(p.steps)}
	set := func(key, format string, args ...any) { keys[key] = fmt.Sprintf(format, args...) }
	if p.nodes > 1 {
		set("child.nodes", "%d", p.nodes)
		set("child.node", "%d", node)
	}
	if p.way != nil {
		set("child.checkpoints", "%q", p.way.pattern)
	}
	if p.signal != "" {
		set("child.save_signal", "%q", p.signal)
	}
	if p.plain {
		set("child.patterns", "%s", `['at step (?P<step>\d+) the loss is (?P<loss>\S+)']`)
	}
	for name, f := range childOptions {
		if p.options[name] {
			f(p.source("option "+name), p, set)
		}
	}
	return keys
}

// trainsOn returns how many steps a program that was asked to save before it is stopped
// may make after that, until two looks have found the checkpoint: a program may pause between
// two files of one, so that more looks have to find these as they were.
func (p *childPlan) trainsOn() int64 {
	if p.signal == "" {
		return 0
	}
	if p.nodes > 1 {
		return int64(8 * time.Second / p.stepTime) // all nodes get the signal once they know of it
	}
	if p.way != nil && len(p.way.files(1)) > 1 {
		return int64(5 * time.Second / p.stepTime)
	}
	return int64(3 * time.Second / p.stepTime)
}

// unsure returns how many steps a program may make in the time that a report may take: where
// names have no steps, the times of reports tell which of them a checkpoint has.
func (p *childPlan) unsure() int64 {
	if !p.way.counted {
		return 0
	}
	return int64(100 * time.Millisecond / p.stepTime)
}

// during returns a time in which at most so many steps are made.
func (p *childPlan) during(rnd *rand.Rand, steps int) time.Duration {
	return between(rnd, p.stepTime/2, time.Duration(steps)*p.stepTime) + time.Millisecond
}

// smaller returns plans with a life or an option less.
func (p *childPlan) smaller() []*childPlan {
	var all []*childPlan
	for _, c := range p.choices.smaller() {
		q := *p
		q.choices = c
		all = append(all, &q)
	}
	return all
}

// keepOnly returns the plan without what is not among the words.
func (p *childPlan) keepOnly(words []string) *childPlan {
	q := *p
	q.choices = p.keep(words)
	return &q
}

// String says what happens, for anyone who looks for the cause.
func (p *childPlan) String() string {
	way := "nothing"
	if p.way != nil {
		way = p.way.name
	}
	return fmt.Sprintf("seed %d: a program that saves %s every %d steps of %v in %v, loads in %v, manners %d, exit code %d, picks %v, silent %v, second name %d, %+v; lives:%s\n%s",
		p.seed, way, p.every, p.stepTime, p.saveTime, p.loadTime, p.manners, p.termCode, p.picks, p.silent, p.second, p.team, p.events(), tomlOf(p.keys(0), "LOGDIR"))
}
