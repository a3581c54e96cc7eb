package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/trainerd/trainerd/tools/internal/excuse"
)

// test is a test of the package.
type test struct {
	binary *binary
	name   string
	took   time.Duration
}

// The tests of a mutant run in groups, each in one process: the first takes about
// this long, each further one twice as long as the one before.
const firstGroup = 300 * time.Millisecond

// Even the shortest test has this long before it counts as stuck.
const minimum = 10 * time.Second

func environment(dir, reached string, mutant int, inMemory bool) []string {
	env := []string{"MUTATE_ACTIVE=" + strconv.Itoa(mutant)}
	if mutant == 0 {
		env = append(env, "MUTATE_REACHED="+reached)
	}
	if inMemory {
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
	return b.start(ctx, limit, mutant, b.name, "-test.run", pattern, "-test.failfast", "-test.v")
}

// measure runs each test alone without a mutant, and finds how long it takes and
// which mutants it reaches.
func (b *binary) measure(ctx context.Context, mutants []*mutant, o options) error {
	reached, errs := make([][]int, len(b.tests)), make([]error, len(b.tests))
	each(o.jobs, len(b.tests), func(i int) {
		if t := b.tests[i]; o.tests.MatchString(t.name) && ctx.Err() == nil {
			reached[i], errs[i] = b.measureTest(ctx, t, len(mutants), o.longest)
		}
	})
	for i, t := range b.tests {
		for _, id := range reached[i] {
			mutants[id-1].tests = append(mutants[id-1].tests, t)
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// measureTest returns the mutants that a test reaches, none if it takes too long to judge.
func (b *binary) measureTest(ctx context.Context, t *test, mutants int, longest time.Duration) (reached []int, err error) {
	out, err := b.runTests(ctx, 10*time.Minute, 0, t)
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil { // some count allocations, for instance
		fmt.Fprintf(os.Stderr, "mutate: left out: %s, which fails without a mutant: %v\n%s", t.name, err, out.output)
		return nil, nil
	}
	if t.took = testTime(out.output); t.took > longest {
		fmt.Fprintf(os.Stderr, "mutate: left out: %s, which takes %v\n", t.name, t.took.Round(time.Second))
		return nil, nil
	}
	for text := range strings.FieldsSeq(out.reached) {
		id, err := strconv.Atoi(text)
		if err != nil || id < 1 || id > mutants {
			return nil, fmt.Errorf("%s: reached mutant %q, of %d", t.name, text, mutants)
		}
		reached = append(reached, id)
	}
	return reached, nil
}

// each calls do with the numbers below n, jobs of them at a time.
func each(jobs, n int, do func(i int)) {
	next := make(chan int)
	var done sync.WaitGroup
	for range max(1, jobs) {
		done.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	done.Wait()
}

var (
	passed = regexp.MustCompile(`(?m)^--- PASS: \S+ \(([\d.]+s)\)`)
	failed = regexp.MustCompile(`(?m)^ *--- FAIL: ([^/\s]+)`)
)

// testTime returns how long a test took, without the start of its process.
func testTime(output string) time.Duration {
	if m := passed.FindStringSubmatch(output); m != nil {
		d, _ := time.ParseDuration(m[1])
		return d
	}
	return 0 // it was skipped
}

// killers are the tests that have killed mutants of each function, the last one
// first: it is the most likely to kill the next one.
type killers struct {
	mu sync.Mutex
	of map[string][]*test
}

func (k *killers) add(m *mutant, t *test) {
	k.mu.Lock()
	defer k.mu.Unlock()
	others := slices.DeleteFunc(k.of[m.function], func(o *test) bool { return o == t })
	k.of[m.function] = slices.Insert(others, 0, t)
}

// order puts the tests of a mutant in the order in which they are to judge it: those
// that have killed mutants of the same function, then those of the same package,
// and the quick ones first.
func (k *killers) order(m *mutant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	rank := map[*test]int{}
	for i, t := range slices.Backward(k.of[m.function]) {
		rank[t] = i - len(k.of[m.function])
	}
	slices.SortStableFunc(m.tests, func(x, y *test) int {
		return cmp.Or(cmp.Compare(rank[x], rank[y]), cmp.Compare(x.binary.name, y.binary.name), cmp.Compare(x.took, y.took))
	})
}

// judgeAll runs the tests of each mutant that some test reaches and nothing excuses.
func (p *pkg) judgeAll(ctx context.Context, o options, excuses *excuse.List) {
	for _, m := range p.mutants {
		switch {
		case excuses.Excused(m.key()):
			m.verdict = excused
		case len(m.tests) > 0:
			m.verdict = pending
		}
	}
	known := &killers{of: map[string][]*test{}}
	work := make(chan *mutant)
	var done sync.WaitGroup
	for range max(1, o.jobs) {
		done.Go(func() {
			for m := range work {
				if m.verdict = judge(ctx, m, known); m.verdict == survived {
					fmt.Fprintf(os.Stderr, "mutate: survived: %s\n", m)
				}
			}
		})
	}
	last := time.Now()
	for i, m := range p.mutants {
		if ctx.Err() != nil {
			break
		}
		if m.verdict == pending && o.judges(m) {
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

// judge runs the tests that reach a mutant. Where it is interrupted, the mutant has
// not been judged.
func judge(ctx context.Context, m *mutant, known *killers) verdict {
	known.order(m)
	for _, group := range groups(m.tests) {
		limit := minimum
		for _, t := range group {
			limit += 5 * t.took
		}
		o, err := group[0].binary.runTests(ctx, limit, m.id, group...)
		if ctx.Err() != nil {
			return pending
		}
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == unconfined {
			continue // it was not run
		}
		if err != nil {
			if t := killer(group, o.output); t != nil {
				known.add(m, t)
			}
			return killed
		}
	}
	return survived
}

// killer returns the test of a group that has failed, nil where that is not known.
func killer(group []*test, output string) *test {
	if len(group) == 1 {
		return group[0]
	}
	if name := failed.FindStringSubmatch(output); name != nil {
		for _, t := range group {
			if t.name == name[1] {
				return t
			}
		}
	}
	return nil
}

// groups returns the tests that run in one process. Small groups come first: most
// mutants are killed at once, and the others need few processes.
func groups(tests []*test) [][]*test {
	var all [][]*test
	took, limit := time.Duration(0), firstGroup
	for _, t := range tests {
		n := len(all)
		if n > 0 && all[n-1][0].binary == t.binary && took+t.took <= limit {
			all[n-1] = append(all[n-1], t)
			took += t.took
			continue
		}
		if n > 0 {
			limit *= 2
		}
		all = append(all, []*test{t})
		took = t.took
	}
	return all
}
