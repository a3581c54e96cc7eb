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
//	save SECONDS       it wrote a checkpoint next to its steps, in that time
//	end DIGEST         it is done, with these bits
type journal struct {
	starts []start
	steps  []step
	saves  []float64
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
		var took float64
		if _, err := fmt.Sscan(rest, &took); err != nil {
			return err
		}
		j.saves = append(j.saves, took)
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
	progress float64 // seconds of the steps that were not done again
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
		a.progress += s.seconds()
		a.reached = max(a.reached, n)
	}
	a.lost = len(j.steps) - len(last)
	return a
}

// share is the Effective Training Time Ratio.
func (a account) share() float64 { return a.progress / a.wall }

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// stepSeconds is the median time of a step. The first of a process are left out:
// they fetch memory.
func (j *journal) stepSeconds() float64 {
	var all []float64
	for i, s := range j.steps {
		if i > 1 && j.steps[i-2].process == s.process {
			all = append(all, s.seconds())
		}
	}
	return median(all)
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

// saveSeconds is the median time between two steps with a save in between, in
// excess of that without one.
func (j *journal) saveSeconds(every int) float64 {
	var with, without []float64
	for i, s := range j.steps[1:] {
		before := j.steps[i]
		switch gap := s.begin - before.end; {
		case s.process != before.process:
		case before.number%every == 0:
			with = append(with, gap)
		default:
			without = append(without, gap)
		}
	}
	return max(median(with)-median(without), 0)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
