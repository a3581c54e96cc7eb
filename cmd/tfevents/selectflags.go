package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
)

// The flags that select runs and tags have one name, meaning and text in all commands.

func runFlag() cli.Flag {
	return &cli.StringFlag{Name: "run", Usage: "only runs that match the `REGEXP`"}
}

func tagFlag() cli.Flag {
	return &cli.StringFlag{Name: "tag", Usage: "only tags that match the `REGEXP`"}
}

// selected returns the expression that a flag of a command gives, one that matches all
// without it.
func selected(c *cli.Context, flag string) (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(c.String(flag))
	if err != nil {
		return nil, usagef("%s: --%s: %w", c.Command.Name, flag, err)
	}
	return pattern, nil
}

// selectRuns leaves the runs whose names match.
func (s *source) selectRuns(pattern *regexp.Regexp) error {
	var names []string
	s.runs = slices.DeleteFunc(s.runs, func(r tfevents.Run) bool {
		names = append(names, shown(r.Name))
		return !pattern.MatchString(r.Name)
	})
	if len(s.runs) == 0 {
		return fmt.Errorf("%w: no run matches %s; there are %s", errNothing, pattern, strings.Join(names[:min(len(names), 10)], ", "))
	}
	return nil
}
