//go:build unix

package world

import (
	"maps"
	"math/rand/v2"
)

// Some programs report nothing: how far they have come is known by what they save alone.

// failsAfterSaves is a program that fails a few times, each time after a save.
var failsAfterSaves = &event{name: "program fails after saves", fails: true, program: func(p *program) error {
	p.badSaves.Store(2 + p.rnd.Int64N(3))
	return nil
}}

// silence has some programs report nothing, and fail after saves.
func (p *childPlan) silence(rnd *rand.Rand) {
	if p.nodes > 1 || p.way == nil || !p.way.hasSteps() || p.way.counted || p.every == 0 || rnd.IntN(4) > 0 {
		return
	}
	p.silent = true
	p.options = maps.Clone(p.options)
	for _, key := range []string{"child.hang_secs", "child.keep_best", "child.max_rewinds"} { // these are about reports
		delete(p.options, key)
	}
	for i := range p.lives {
		if rnd.IntN(2) == 0 {
			p.lives[i].event = failsAfterSaves
		}
	}
}

// noteEnd counts the ends in a row before which the program has shown nothing of what it did.
func (p *program) noteEnd() {
	shown := p.step > p.first
	if p.plan.silent {
		shown = p.has > p.first
	}
	if shown {
		p.idleEnds.Store(0)
	} else {
		p.idleEnds.Add(1)
	}
}

// judgeDistrust judges whether a checkpoint may be passed over as one with which the program fails.
func (n *childNode) judgeDistrust() error {
	if n.plan.nodes == 1 && n.idleEnds.Load() < 2 {
		return broke("a checkpoint is passed over, and the program has not failed twice with it")
	}
	return nil
}

// failsNow reports whether the program fails after the save that it has made.
func (l *childLife) failsNow() bool { return l.badSaves.Add(-1) >= 0 }
