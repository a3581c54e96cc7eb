package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/trainerd/report"
)

func lsCommand() *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list the runs in folders, and what became of them", UsageText: "trainerd ls [--watch] [--json] [DIR...]",
		Description: `A run is a folder in which a job has written, wherever it is below DIR (default:
the current folder), also in the logdir of another run, or where a link leads. One
that runs is asked for its step; of one that has ended its report says how, and of
one that was killed its lock and its newest checkpoint. If a folder cannot be
searched, as that of another user, the other runs are listed and the exit code is 74.

EXAMPLES:
   trainerd ls logs
   trainerd ls --json logs | jq -r '.[] | select(.outcome == "killed") | .logdir'`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "watch", Usage: "show them again each second, until Ctrl-C"},
			&cli.BoolFlag{Name: "json", Usage: "print a JSON list, with --watch one line each second"},
		},
		Action: func(c *cli.Context) error {
			dirs := c.Args().Slice()
			if len(dirs) == 0 {
				dirs = []string{"."}
			}
			show := printRuns
			if c.Bool("json") {
				show = func(w io.Writer, runs []*runState) error { return json.NewEncoder(w).Encode(runs) }
			}
			for {
				runs, unread := findRuns(c.Context, dirs)
				if len(runs) == 0 && unread != nil {
					return unread
				}
				if c.Bool("watch") && !c.Bool("json") && terminal.Is(c.App.Writer) {
					fmt.Fprint(terminal.Beneath(c.App.Writer), "\x1b[H\x1b[2J")
				}
				if err := show(c.App.Writer, runs); err != nil || !c.Bool("watch") {
					return cmp.Or(err, unread)
				}
				select {
				case <-c.Context.Done():
					return nil
				case <-time.After(time.Second):
				}
			}
		},
	}
}

// runState is a run in the list.
type runState struct {
	*report.Last
	Steps int64    `json:"steps,omitempty"` // it is to make, if it runs
	Loss  *float64 `json:"loss,omitempty"`
	ETA   float64  `json:"eta_seconds,omitempty"`
}

// stateOf returns the state of a run. That of a run that does not answer within a second
// is what its files say.
func stateOf(ctx context.Context, dir string) (*runState, error) {
	last, err := report.ReadLast(dir)
	if err != nil {
		return nil, err
	}
	if last.Outcome != report.Running {
		return &runState{Last: last}, nil
	}
	r := &runState{Last: last}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client := chiefClient(dir)
	defer client.Close()
	if st, err := client.Status(ctx); err == nil {
		r.Step, r.Steps, r.Loss, r.ETA = st.Step, st.Steps, st.Loss, st.ETA
		r.Outcome = string(st.Phase)
	}
	return r, nil
}

// printRuns prints a table.
func printRuns(w io.Writer, runs []*runState) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "no runs here; a run is a folder with run-report.json, trainerd.lock or checkpoint")
		return err
	}
	t := terminal.NewTable("RUN", "STATE", "STEP", "METRICS", "CHECKPOINT", "AGE", "WHY")
	for _, r := range runs {
		step := "-"
		if r.Step >= 0 {
			step = strconv.FormatInt(r.Step, 10)
		}
		if r.Steps > 0 {
			step += "/" + strconv.FormatInt(r.Steps, 10)
		}
		var metrics []string
		for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
			if name == "learning_rate" {
				continue // of the steps, not of the model
			}
			metrics = append(metrics, fmt.Sprintf("%s %.4g", name, r.Metrics[name]))
		}
		if r.Loss != nil {
			metrics = append(metrics, fmt.Sprintf("loss %.4g", *r.Loss))
		}
		age := ""
		if !r.Ended.IsZero() {
			age = inOneUnit(max(time.Since(r.Ended), 0)) // the clock may have been set back
		}
		t.Add(shown(r.Logdir), shown(r.Outcome), step, shown(strings.Join(metrics, " ")), shown(r.Checkpoint), age, shown(r.Why))
	}
	return t.Print(w, terminal.StyleFor(w))
}

// shown returns a cell of a table, or a line, of what the files of a run say: they may be
// another user's.
func shown(text string) string {
	if text == "" {
		return ""
	}
	return terminal.Shown(text)
}

// inOneUnit returns a time in its largest unit, as 5m.
func inOneUnit(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 2*day:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d/day))
}

// showLast prints what is left of a run, and returns that nothing runs.
func showLast(w io.Writer, dir string, asJSON bool, cause error) error {
	last, err := report.ReadLast(dir)
	if err != nil {
		return errors.Join(cause, err)
	}
	if last.Outcome == report.Running || last.Outcome == report.Empty {
		return cause
	}
	if asJSON {
		if err := json.NewEncoder(w).Encode(last); err != nil {
			return err
		}
		return errNotRunning
	}
	fmt.Fprintf(w, "not running: %s\n  logdir    %s\n", shown(last.Text()), shown(last.Logdir))
	if last.Checkpoint != "" {
		fmt.Fprintf(w, "  saved     %s\n", shown(last.Checkpoint))
	}
	if !last.Ended.IsZero() {
		fmt.Fprintf(w, "  ended     %s\n", last.Ended.Local().Format(time.DateTime))
	}
	return errNotRunning
}
