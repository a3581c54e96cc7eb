package main

import (
	"errors"
	"fmt"

	"github.com/BurntSushi/toml"
)

const configName = "bench.toml"

// race is one comparison: the same work by several contestants.
type race struct {
	Name        string
	About       string
	Measure     string
	Better      string
	Also        []measured // more tables of the same runs, without bars
	CPUs        int
	Prepare     []string
	Short       []string
	Full        []string
	Contestants []contestant `toml:"contestant"`
}

// measured is a way to measure a race.
type measured struct{ Measure, Better string }

type contestant struct {
	Name    string
	Command []string
	Bar     float64 // 0: shown only
	Limit   bool
	Alike   bool // the same task with other numbers, so what it says of its work is not compared
}

// What measure and better may be besides the names of metrics.
const (
	measureSeconds = "seconds"
	measureCPU     = "cpu_seconds"
	measureProcess = "process"  // wall clock of the whole process
	measurePeak    = "peak_mib" // largest resident memory of the process

	betterLess = "less"
	betterMore = "more"
)

// readConfig reads the races of an area: all, or the one of the given name.
func readConfig(file, only string) ([]race, error) {
	var config struct {
		Races []race `toml:"race"`
	}
	meta, err := toml.DecodeFile(file, &config)
	if err != nil {
		return nil, err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s: unknown key %s", file, unknown[0])
	}
	var races []race
	seen := make(map[string]bool)
	for _, r := range config.Races {
		if err := r.complete(); err != nil {
			return nil, fmt.Errorf("%s: race %q: %w", file, r.Name, err)
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("%s: two races are named %q", file, r.Name)
		}
		seen[r.Name] = true
		if only == "" || r.Name == only {
			races = append(races, r)
		}
	}
	return races, nil
}

// complete checks the race and fills in what was left out.
func (r *race) complete() error {
	if r.Measure == "" {
		r.Measure = measureSeconds
	}
	if r.Better == "" {
		r.Better = betterLess
	}
	for _, m := range r.Also {
		if m.Better != betterLess && m.Better != betterMore {
			return fmt.Errorf("also %s: better = %q: want %q or %q", m.Measure, m.Better, betterLess, betterMore)
		}
	}
	switch {
	case r.Name == "":
		return errors.New("it has no name")
	case r.Better != betterLess && r.Better != betterMore:
		return fmt.Errorf("better = %q: want %q or %q", r.Better, betterLess, betterMore)
	case r.CPUs < 0:
		return fmt.Errorf("cpus = %d: want 0 for all, or a number", r.CPUs)
	case len(r.Contestants) == 0:
		return errors.New("it has no contestant")
	case r.Contestants[0].Bar != 0 || r.Contestants[0].Limit:
		return errors.New("the first contestant is ours: it has no bar and is no limit")
	}
	for _, c := range r.Contestants {
		if c.Name == "" || len(c.Command) == 0 {
			return errors.New("a contestant has no name or no command")
		}
		if c.Bar < 0 {
			return fmt.Errorf("%s: bar = %g: want a positive ratio", c.Name, c.Bar)
		}
	}
	return nil
}
