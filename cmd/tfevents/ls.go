package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
)

// purgeModes are the values of --purge.
var purgeModes = map[string]tfevents.Purge{
	"exact":       tfevents.PurgeExact,
	"python":      tfevents.PurgePython,
	"data-server": tfevents.PurgeDataServer,
	"none":        tfevents.KeepAll,
}

func purgeFlag() cli.Flag {
	return &cli.StringFlag{
		Name:  "purge",
		Value: "exact",
		Usage: "what to leave out that a resumed training wrote again: exact, python or data-server (as these loaders of TensorBoard do), none",
	}
}

func purgeMode(c *cli.Context) (tfevents.Purge, error) {
	mode, ok := purgeModes[c.String("purge")]
	if !ok {
		return 0, usagef("%s: --purge %s: want exact, python, data-server or none", c.Command.Name, c.String("purge"))
	}
	return mode, nil
}

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list runs and their tags",
		ArgsUsage: "PATH",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}, purgeFlag()},
		Action:    ls,
	}
}

// runInfo is a run as ls --json prints it.
type runInfo struct {
	Run    string    `json:"run"`
	Files  []string  `json:"files"`
	Bytes  int64     `json:"bytes"`
	Events int       `json:"events"`
	Purged int       `json:"purged"`
	Tags   []tagInfo `json:"tags"`
}

type tagInfo struct {
	Tag       string   `json:"tag"`
	Plugin    string   `json:"plugin"`
	Points    int      `json:"points"`
	FirstStep int64    `json:"first_step"`
	LastStep  int64    `json:"last_step"`
	Last      *float64 `json:"last_value,omitempty"` // of scalars, if JSON can say it
}

func ls(c *cli.Context) error {
	path, err := oneArg(c, "PATH")
	if err != nil {
		return err
	}
	mode, err := purgeMode(c)
	if err != nil {
		return err
	}
	s, err := openSource(path)
	if err != nil {
		return err
	}
	report := newReporter(c)
	infos := []runInfo{}
	for _, run := range s.runs {
		if err := c.Context.Err(); err != nil {
			return err
		}
		d := s.read(run, mode, report)
		infos = append(infos, describeRun(s, run, d))
	}
	if c.Bool("json") {
		if err := printJSON(c.App.Writer, infos); err != nil {
			return err
		}
	} else if err := printRuns(c.App.Writer, infos); err != nil {
		return err
	}
	return report.result()
}

func describeRun(s *source, run tfevents.Run, d *tfevents.RunData) runInfo {
	info := runInfo{Run: run.Name, Events: d.Events, Purged: d.Purged, Tags: []tagInfo{}}
	for _, f := range run.Files {
		info.Files = append(info.Files, s.path(f))
		if stat, err := os.Stat(s.path(f)); err == nil {
			info.Bytes += stat.Size()
		}
	}
	for _, series := range d.Series {
		last := series.Points[len(series.Points)-1]
		t := tagInfo{
			Tag: series.Tag, Plugin: series.Plugin(), Points: len(series.Points),
			FirstStep: series.Points[0].Step, LastStep: last.Step,
		}
		x, ok := tfevents.ScalarOf(last.Value)
		if ok && t.Plugin == tfevents.PluginScalars && !math.IsNaN(x) && !math.IsInf(x, 0) {
			t.Last = &x
		}
		info.Tags = append(info.Tags, t)
	}
	return info
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printRuns(w io.Writer, infos []runInfo) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tTAG\tPLUGIN\tPOINTS\tSTEPS\tLAST")
	for _, info := range infos {
		for _, tag := range info.Tags {
			last := ""
			if tag.Last != nil {
				last = strconv.FormatFloat(*tag.Last, 'g', 6, 64)
			}
			plugin := tag.Plugin
			if plugin == "" {
				plugin = "-"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d..%d\t%s\n", info.Run, tag.Tag, plugin, tag.Points, tag.FirstStep, tag.LastStep, last)
		}
		if len(info.Tags) == 0 {
			fmt.Fprintf(t, "%s\t-\t-\t0\t\t\n", info.Run)
		}
	}
	return t.Flush()
}
