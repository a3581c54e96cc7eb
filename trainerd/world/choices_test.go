//go:build unix

package world

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// choices are what is drawn from a seed for a history of any kind. Each part draws
// from a source of its own, so that leaving one out does not change the others.
type choices struct {
	seed    uint64
	options map[string]bool // those that may differ from their default
	lives   []life
}

// A life of a training, but the last, which is not disturbed.
type life struct {
	number int
	event  *event
}

// choose chooses among options.
func choose[O any](seed uint64, options map[string]O) choices {
	c := choices{seed: seed, options: map[string]bool{}}
	for name := range options {
		c.options[name] = c.source("choose "+name).IntN(2) == 0
	}
	return c
}

// disturb adds up to five lives, each with one of the events.
func (c *choices) disturb(rnd *rand.Rand, events []*event) {
	for n := range rnd.IntN(6) {
		c.lives = append(c.lives, life{n, events[rnd.IntN(len(events))]})
	}
}

// source returns the random numbers of a part of the plan.
func (c choices) source(part string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(part))
	return rand.New(rand.NewPCG(c.seed, h.Sum64()))
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

// with returns a copy that is changed.
func (c choices) with(change func(c *choices)) choices {
	c.options, c.lives = maps.Clone(c.options), slices.Clone(c.lives)
	change(&c)
	return c
}

// shrink returns the smallest plan found that still breaks a rule, with what it
// breaks.
func shrink[P any](p P, broken error, smaller func(P) []P, run func(P) error) (P, error) {
	for again := true; again; {
		again = false
		for _, q := range smaller(p) {
			if err := run(q); isLike(err, broken) {
				p, broken, again = q, err, true
				break
			}
		}
	}
	return p, broken
}

// kept names the options and lives of a plan, for [choices.keep].
func (c choices) kept() string {
	words := append([]string{"-"}, c.chosen()...)
	for _, l := range c.lives {
		words = append(words, strconv.Itoa(l.number))
	}
	return strings.Join(words, " ")
}

// keep leaves out all options and lives that are not among the words.
func (c choices) keep(words []string) choices {
	return c.with(func(c *choices) {
		c.lives = slices.DeleteFunc(c.lives, func(l life) bool { return !slices.Contains(words, strconv.Itoa(l.number)) })
		for name := range c.options {
			c.options[name] = c.options[name] && slices.Contains(words, name)
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

// smaller returns choices with a life or an option less.
func (c choices) smaller() []choices {
	var all []choices
	for i := range c.lives {
		all = append(all, c.with(func(c *choices) { c.lives = slices.Delete(c.lives, i, i+1) }))
	}
	for _, name := range c.chosen() {
		all = append(all, c.with(func(c *choices) { c.options[name] = false }))
	}
	return all
}

// chosen returns the options that may differ from their default, in order.
func (c choices) chosen() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.options)) {
		if c.options[name] {
			names = append(names, name)
		}
	}
	return names
}

// events names what goes wrong in the lives.
func (c choices) events() string {
	var b strings.Builder
	for _, l := range c.lives {
		b.WriteString(" " + strconv.Itoa(l.number) + "=" + l.event.name)
	}
	return b.String()
}
