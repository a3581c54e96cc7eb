package world

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plan is all that happens in a history. Each part draws from a source of its
// own, so that leaving one out does not change the others.
type plan struct {
	seed     uint64
	job      *jobKind
	steps    int64
	stepTime time.Duration
	options  map[string]bool // those that may differ from their default
	lives    []life
}

// A life of a training, but the last, which is not disturbed.
type life struct {
	number int
	event  *event
}

// source returns the random numbers of a part of the plan.
func (p *plan) source(part string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(part))
	return rand.New(rand.NewPCG(p.seed, h.Sum64()))
}

func newPlan(seed uint64) *plan {
	p := &plan{seed: seed, options: map[string]bool{}}
	rnd := p.source("plan")
	p.job = jobKinds[rnd.IntN(len(jobKinds))]
	p.steps = 20 + rnd.Int64N(p.job.most-20)
	p.stepTime = between(rnd, 100*time.Millisecond, 10*time.Minute)
	for name := range options {
		p.options[name] = p.source("choose "+name).IntN(2) == 0
	}
	for n := range rnd.IntN(6) {
		p.lives = append(p.lives, life{n, events[rnd.IntN(len(events))]})
	}
	return p
}

// between returns a time between two, each order of magnitude as likely as another.
func between(rnd *rand.Rand, low, high time.Duration) time.Duration {
	d := float64(low)
	for range 40 {
		if rnd.IntN(40) == 0 || d > float64(high) {
			break
		}
		d *= 1 + rnd.Float64()*0.6
	}
	return min(time.Duration(d).Round(time.Millisecond), high)
}

// with returns a copy of the plan that is changed.
func (p *plan) with(change func(q *plan)) *plan {
	q := *p
	q.options, q.lives = maps.Clone(p.options), slices.Clone(p.lives)
	change(&q)
	return &q
}

// shrink returns the smallest plan found that still breaks a rule, with what it
// breaks.
func (p *plan) shrink(broken error, run func(*plan) error) (*plan, error) {
	for again := true; again; {
		again = false
		for _, q := range p.smaller() {
			if err := run(q); isLike(err, broken) {
				p, broken, again = q, err, true
				break
			}
		}
	}
	return p, broken
}

// kept names the options and lives of a plan, for [plan.keep].
func (p *plan) kept() string {
	words := append([]string{"-"}, p.chosen()...)
	for _, l := range p.lives {
		words = append(words, strconv.Itoa(l.number))
	}
	return strings.Join(words, " ")
}

// keep leaves out all options and lives that are not among the words.
func (p *plan) keep(words []string) *plan {
	return p.with(func(q *plan) {
		q.lives = slices.DeleteFunc(q.lives, func(l life) bool { return !slices.Contains(words, strconv.Itoa(l.number)) })
		for name := range q.options {
			q.options[name] = q.options[name] && slices.Contains(words, name)
		}
	})
}

// isLike reports whether two errors are of one rule, as far as their words tell.
func isLike(a, b error) bool {
	if a == nil {
		return false
	}
	words := func(err error) string {
		return strings.Map(lettersOnly, err.Error()[strings.Index(err.Error(), "RULE")+1:])
	}
	x, y := words(a), words(b)
	n := min(len(x), len(y), 30)
	return x[:n] == y[:n]
}

func lettersOnly(r rune) rune {
	if r >= 'a' && r <= 'z' || r == ' ' {
		return r
	}
	return -1
}

// smaller returns plans with a life or an option less.
func (p *plan) smaller() []*plan {
	var all []*plan
	for i := range p.lives {
		all = append(all, p.with(func(q *plan) { q.lives = slices.Delete(q.lives, i, i+1) }))
	}
	for _, name := range slices.Sorted(maps.Keys(p.options)) {
		if p.options[name] {
			all = append(all, p.with(func(q *plan) { q.options[name] = false }))
		}
	}
	return all
}

// String says what happens, for who looks for the cause.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %s, %d steps of %v; options %s; lives:", p.seed, p.job.name, p.steps, p.stepTime, strings.Join(p.chosen(), " "))
	for _, l := range p.lives {
		fmt.Fprintf(&b, " %d=%s", l.number, l.event.name)
	}
	return b.String()
}

func (p *plan) chosen() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(p.options)) {
		if p.options[name] {
			names = append(names, name)
		}
	}
	return names
}

// during returns a time in which at most so many steps are made, and at least a
// half.
func (p *plan) during(rnd *rand.Rand, steps int) time.Duration {
	return between(rnd, p.stepTime/2, time.Duration(steps)*p.stepTime)
}
