package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// test is a test of the package.
type test struct {
	binary *binary
	name   string
	took   time.Duration
}

// Tests that take less than this are run together.
const short = 300 * time.Millisecond

// Even the shortest test has this long before it counts as stuck.
const minimum = 10 * time.Second

func environment(dir, reached string, mutant int, confined bool) []string {
	env := []string{"MUTATE_ACTIVE=" + strconv.Itoa(mutant)}
	if mutant == 0 {
		env = append(env, "MUTATE_REACHED="+reached)
	}
	if confined {
		return append(env, "TMPDIR=/dev/shm")
	}
	return append(env, "TMPDIR="+dir)
}

func (b *binary) runTests(ctx context.Context, limit time.Duration, mutant int, tests ...*test) (outcome, error) {
	var names []string
	for _, t := range tests {
		names = append(names, t.name)
	}
	pattern := "^(" + strings.Join(names, "|") + ")$"
	return b.start(ctx, limit, mutant, b.name, "-test.run", pattern, "-test.failfast")
}

// measure runs each test alone without a mutant, and finds how long it takes and
// which mutants it reaches. Tests that take longer than longest judge none.
func (b *binary) measure(ctx context.Context, mutants []*mutant, longest time.Duration) error {
	for _, t := range b.tests {
		start := time.Now()
		o, err := b.runTests(ctx, 10*time.Minute, 0, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // some count allocations, for instance
			fmt.Fprintf(os.Stderr, "mutate: left out: %s, which fails without a mutant: %v\n%s", t.name, err, o.output)
			continue
		}
		if t.took = time.Since(start); t.took > longest {
			fmt.Fprintf(os.Stderr, "mutate: left out: %s, which takes %v\n", t.name, t.took.Round(time.Second))
			continue
		}
		for id := range strings.FieldsSeq(o.reached) {
			n, err := strconv.Atoi(id)
			if err != nil || n < 1 || n > len(mutants) {
				return fmt.Errorf("%s: reached mutant %q, of %d", t.name, id, len(mutants))
			}
			mutants[n-1].tests = append(mutants[n-1].tests, t)
		}
	}
	return nil
}

// judgeAll runs the tests of each mutant that some test reaches.
func (p *pkg) judgeAll(ctx context.Context, o options) {
	for _, m := range p.mutants {
		slices.SortStableFunc(m.tests, func(x, y *test) int { return cmp.Compare(x.took, y.took) })
		if len(m.tests) > 0 {
			m.verdict = pending
		}
	}
	work := make(chan *mutant)
	var done sync.WaitGroup
	for range max(1, o.jobs) {
		done.Go(func() {
			for m := range work {
				m.verdict = judge(ctx, m)
			}
		})
	}
	last := time.Now()
	for i, m := range p.mutants {
		if ctx.Err() != nil {
			break
		}
		if m.verdict == pending && (o.only == nil || o.only.MatchString(m.String())) {
			work <- m
		}
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			fmt.Fprintf(os.Stderr, "mutate: %s: %d of %d mutants\n", p.path, i, len(p.mutants))
		}
	}
	close(work)
	done.Wait()
}

// judge runs the tests that reach a mutant, the quick ones first.
func judge(ctx context.Context, m *mutant) verdict {
	for _, group := range groups(m.tests) {
		limit := minimum
		for _, t := range group {
			limit += 5 * t.took
		}
		_, err := group[0].binary.runTests(ctx, limit, m.id, group...)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == unconfined {
			continue // it was not run
		}
		if err != nil && ctx.Err() == nil {
			return killed
		}
	}
	return survived
}

// groups returns the tests that run in one process: the short ones of a binary.
func groups(tests []*test) [][]*test {
	var all [][]*test
	together := map[*binary]int{}
	for _, t := range tests {
		at, some := together[t.binary]
		switch {
		case t.took < short && some:
			all[at] = append(all[at], t)
			continue
		case t.took < short:
			together[t.binary] = len(all)
		}
		all = append(all, []*test{t})
	}
	return all
}
