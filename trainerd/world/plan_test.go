//go:build unix

package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A plan is all that happens in a history of the library.
type plan struct {
	choices
	job      *jobKind
	steps    int64
	stepTime time.Duration
}

func newPlan(seed uint64) *plan {
	p := laterPlan(seed)
	p.pairUp(p.source("pairs"), slices.Concat(events, laterEvents))
	return p
}

// laterPlan is newPlan as it was before two things happened at once.
func laterPlan(seed uint64) *plan { return drawPlan(seed, slices.Concat(events, laterEvents)) }

// firstPlan is that as it was when the first defects were found.
func firstPlan(seed uint64) *plan { return drawPlan(seed, events) }

func drawPlan(seed uint64, events []*event) *plan {
	p := &plan{choices: choose(seed, options)}
	rnd := p.source("plan")
	p.job = jobKinds[rnd.IntN(len(jobKinds))]
	p.steps = 20 + rnd.Int64N(p.job.most-20)
	p.stepTime = between(rnd, 100*time.Millisecond, 10*time.Minute)
	p.disturb(rnd, events)
	return p
}

// with returns the plan with other choices.
func (p *plan) with(c choices) *plan {
	q := *p
	q.choices = c
	return &q
}

// smaller returns plans with a life or an option less.
func (p *plan) smaller() []*plan {
	var all []*plan
	for _, c := range p.choices.smaller() {
		all = append(all, p.with(c))
	}
	return all
}

// String says what happens, for anyone who looks for the cause.
func (p *plan) String() string {
	return fmt.Sprintf("seed %d: %s, %d steps of %v; options %s; lives:%s", p.seed, p.job.name, p.steps, p.stepTime, strings.Join(p.chosen(), " "), p.events())
}

// during returns a time in which at most so many steps are made, and at least a
// half.
func (p *plan) during(rnd *rand.Rand, steps int) time.Duration {
	return between(rnd, p.stepTime/2, time.Duration(steps)*p.stepTime)
}

// keepOnly returns the plan without what is not among the words.
func (p *plan) keepOnly(words []string) *plan { return p.with(p.keep(words)) }
