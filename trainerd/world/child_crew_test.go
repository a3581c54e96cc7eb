//go:build unix

package world

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A team is how the parts of a program, one on each node, work together. The first of
// them leads, or the last.
type team struct {
	nodes    int
	parts    bool          // each saves a part of the checkpoint, not the leader all of it
	last     bool          // the last leads
	loud     bool          // all report, not the leader alone
	elastic  bool          // it begins without those that do not come in time
	apart    bool          // each ends as soon as it is done
	patience time.Duration // with others when one is lost
}

var oneNode = team{nodes: 1, loud: true}

// joinTime is how long the parts of an elastic program wait for others.
const joinTime = 30 * time.Second

// spread spreads half of the programs over several nodes, and reports whether it did.
func (p *childPlan) spread(rnd *rand.Rand) bool {
	if rnd.IntN(2) == 0 {
		return false
	}
	coin := coin(rnd)
	p.team = team{nodes: 2 + rnd.IntN(2), parts: coin(), last: coin(), loud: coin(), elastic: coin(), apart: coin(), patience: between(rnd, time.Second, time.Minute)}
	p.parts = p.parts && p.way != nil && p.way.partial
	p.apart = p.apart && !p.options["supervisor.stop_grace_secs"] // else the last save may have no time
	return true
}

// A crew is the parts of one start of a program on all nodes, which make their steps
// together.
type crew struct {
	team
	id string

	mu      sync.Mutex
	changed chan struct{}          // closed at the next change
	ranks   []int                  // nodes that take part, once it has begun; nil before
	at      map[int]int64          // the step that each part is about to have made
	made    int64                  // the step that all have made
	said    map[int]int64          // the last step that each part has reported
	wanted  map[int64]bool         // steps after which all save, as one of them was asked to
	saved   map[int64]map[int]bool // the nodes whose part of the checkpoint of a step is there
	told    int64                  // the step that had been announced when it was started
	given   *string                // the checkpoint that it is given, nil before
	from    int64                  // the step that it begins with, -1 before
	lost    <-chan struct{}        // closed when the others are tired of waiting for a part that has ended; nil before

	diverges int64 // the step whose loss will be NaN, 0 for none
	late     bool  // which is reported after a save
}

func newCrew(t team, id string) *crew {
	return &crew{team: t, id: id, changed: make(chan struct{}), at: map[int]int64{}, said: map[int]int64{}, wanted: map[int64]bool{}, saved: map[int64]map[int]bool{}, from: -1}
}

// change changes the crew, and wakes the parts that wait.
func (c *crew) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	close(c.changed)
	c.changed = make(chan struct{})
}

// join adds a part. It reports whether that is in time.
func (c *crew) join(node int) (inTime bool) {
	c.change(func() {
		if c.ranks != nil {
			return
		}
		inTime = true
		if c.at[node] = 0; len(c.at) == c.nodes {
			c.begin()
		} else if c.elastic && len(c.at) == 1 {
			time.AfterFunc(joinTime, func() { c.change(c.begin) })
		}
	})
	return inTime
}

// begin has the parts that have come begin. The caller holds mu.
func (c *crew) begin() {
	if c.ranks == nil && len(c.at) > 0 {
		c.ranks = slices.Sorted(maps.Keys(c.at))
	}
}

// arrive says that a part has come to a step, and whether it was asked to save.
func (c *crew) arrive(node int, step int64, asked bool) {
	c.change(func() {
		c.at[node] = step
		c.wanted[step] = c.wanted[step] || asked
		for _, n := range c.ranks {
			step = min(step, c.at[n])
		}
		c.made = max(c.made, step)
	})
}

// leave says that a part has ended. Without having succeeded it leaves the others waiting.
func (c *crew) leave(node int, succeeded bool) {
	c.change(func() {
		switch {
		case c.ranks == nil:
			delete(c.at, node)
		case !succeeded && c.lost == nil && slices.Contains(c.ranks, node):
			tired := make(chan struct{})
			c.lost = tired
			time.AfterFunc(c.patience, func() { close(tired) })
		}
	})
}

// reports notes that a part has reported a step.
func (c *crew) reports(node int, step int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said[node] = step
}

// unheard returns the steps that some parts have reported and others not: the curve is one
// part's, so it lacks them where that part was ended before it came to them.
func (c *crew) unheard() gap {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := slices.Collect(maps.Values(c.said))
	if !c.loud || len(said) == 0 {
		return gap{}
	}
	return gap{from: slices.Min(said), to: slices.Max(said)}
}

// state returns whether something is so, what is closed when it may have changed, and
// what is closed when there is no use in waiting.
func (c *crew) state(is func() bool) (so bool, changed, lost <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return is(), c.changed, c.lost
}

// rank returns the number of a node among those that take part, and that of the leader.
func (c *crew) rank(node int) (rank, leader int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last {
		leader = len(c.ranks) - 1
	}
	return slices.Index(c.ranks, node), leader
}

// fault returns the step whose loss is NaN, and whether that is reported late.
func (c *crew) fault() (step int64, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.diverges, c.late
}

// hasSaved notes a part of the checkpoint of a step, and reports whether it is complete.
func (c *crew) hasSaved(node int, step int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.saved[step] == nil {
		c.saved[step] = map[int]bool{}
	}
	c.saved[step][node] = true
	return !c.parts || len(c.saved[step]) == len(c.ranks)
}

// floor returns the step that had been announced when it was started: nodes may learn of
// that later.
func (c *crew) floor(announced int64) int64 {
	if c.nodes == 1 {
		return announced
	}
	return min(c.told, announced)
}

// saveAfter reports whether all save after a step, as one of them was asked to.
func (c *crew) saveAfter(step int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted[step]
}

// begins notes the step that a part begins with. All begin with the same.
func (c *crew) begins(node int, step int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from >= 0 && c.from != step {
		return broke("node %d begins at step %d, and another at step %d of the same start", node, step, c.from)
	}
	c.from = step
	return nil
}

// meet waits until all parts of the program have come to a step.
func (p *program) meet(step int64) error {
	p.crew.arrive(p.node, step, p.asked)
	return p.awaitCrew(func() bool { return p.crew.made >= step })
}

// awaitCrew waits until something is so of the crew, and takes signals.
func (p *program) awaitCrew(is func() bool) error {
	for {
		so, changed, lost := p.crew.state(is)
		if so {
			return p.sleep(0) // it may have been stopped meanwhile
		}
		select {
		case <-p.killed:
			return errDead
		case <-changed:
		case <-lost:
			return &programEnd{code: 1}
		case sig := <-p.inbox:
			if err := p.take(sig); err != nil {
				return err
			}
		}
	}
}

// leads reports whether this part of the program is the one that leads.
func (p *program) leads() bool {
	rank, leader := p.crew.rank(p.node)
	return rank == leader
}
