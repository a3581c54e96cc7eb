//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// The journal of a run has a line for each of:
//
//	start PID TIME     a process began, before it loads anything
//	step N BEGIN END   it did a step; times are seconds since 1970
//	save SECONDS TIME  it wrote a checkpoint next to its steps, in that time, until then
//	end DIGEST         it is done, with these bits
type journal struct {
	starts []start
	steps  []step
	saves  []save
	digest string
}

type start struct {
	pid int
	at  float64
}

type step struct {
	number     int
	begin, end float64
	process    int // index of starts
}

func (s step) seconds() float64 { return s.end - s.begin }

// save is a checkpoint that was written next to the steps.
type save struct{ took, end float64 }

// readJournal reads what there is of a journal; none is an empty one.
func readJournal(name string) (*journal, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &journal{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := new(journal)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if err := j.add(lines.Text()); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", name, n, err)
		}
	}
	return j, lines.Err()
}

func (j *journal) add(line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "start":
		var s start
		if _, err := fmt.Sscan(rest, &s.pid, &s.at); err != nil {
			return err
		}
		j.starts = append(j.starts, s)
	case "step":
		s := step{process: len(j.starts) - 1}
		if _, err := fmt.Sscan(rest, &s.number, &s.begin, &s.end); err != nil {
			return err
		}
		j.steps = append(j.steps, s)
	case "save":
		var s save
		if _, err := fmt.Sscan(rest, &s.took, &s.end); err != nil {
			return err
		}
		j.saves = append(j.saves, s)
	case "end":
		j.digest = rest
	default:
		return fmt.Errorf("unknown entry %q", line)
	}
	return nil
}

// account is what a run comes to.
type account struct {
	reached  int     // the last step
	wall     float64 // seconds to the end of the last step
	progress float64 // seconds that its steps take when nothing slows them
	inSteps  float64 // seconds of the steps that were not done again, however slow they were
	lost     int     // steps that were
}

// account judges a run that began at that time.
func (j *journal) account(begun time.Time) account {
	last := make(map[int]step)
	a := account{}
	for _, s := range j.steps {
		last[s.number] = s
		a.wall = s.end - seconds(begun)
	}
	for n, s := range last {
		a.inSteps += s.seconds()
		a.reached = max(a.reached, n)
	}
	a.progress = float64(len(last)) * j.stepSeconds()
	a.lost = len(j.steps) - len(last)
	return a
}

// share is the Effective Training Time Ratio.
func (a account) share() float64 { return a.progress / a.wall }

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// stepSeconds is the mean time of the steps next to which nothing was saved, or of all
// if there are none. The first two of a process are left out: they fetch memory.
func (j *journal) stepSeconds() float64 {
	var quiet, all []float64
	for i, s := range j.steps {
		if i < 2 || j.steps[i-2].process != s.process {
			continue
		}
		all = append(all, s.seconds())
		if !slices.ContainsFunc(j.saves, func(v save) bool { return s.begin < v.end && s.end > v.end-v.took }) {
			quiet = append(quiet, s.seconds())
		}
	}
	if len(quiet) == 0 {
		quiet = all
	}
	return mean(quiet)
}

// startSeconds is the median time from the start of a process to its first step.
func (j *journal) startSeconds() float64 {
	var all []float64
	for i, s := range j.steps {
		if i == 0 || j.steps[i-1].process != s.process {
			all = append(all, s.begin-j.starts[s.process].at)
		}
	}
	return median(all)
}

// restartSeconds is the mean time from a kill to the start of the next process: what
// the supervisor takes, before the program loads anything.
func (j *journal) restartSeconds(kills []time.Time) float64 {
	var all []float64
	for _, k := range kills {
		at := seconds(k)
		if i := slices.IndexFunc(j.starts, func(s start) bool { return s.at > at }); i >= 0 {
			all = append(all, j.starts[i].at-at)
		}
	}
	return mean(all)
}

// saveSeconds is what a save takes from the training: the time by which its steps, and
// what lies between them, take longer than steps of that many seconds without saves.
func (j *journal) saveSeconds(every int, step float64) float64 {
	excess, saves := 0., 0
	for i, s := range j.steps {
		if i < 3 || j.steps[i-3].process != s.process {
			continue
		}
		before := j.steps[i-1]
		excess += s.end - before.end - step
		if before.number%every == 0 {
			saves++
		}
	}
	return max(excess/float64(max(saves, 1)), 0)
}

func mean(values []float64) float64 {
	sum := 0.
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
