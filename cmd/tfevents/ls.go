package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/cmd/internal/garbage"
	"github.com/trainerd/trainerd/cmd/internal/terminal"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// purgeModes are the values of --purge.
var purgeModes = map[string]tfevents.Purge{
	"exact":       tfevents.PurgeExact,
	"python":      tfevents.PurgePython,
	"data-server": tfevents.PurgeDataServer,
	"none":        tfevents.KeepAll,
}

func purgeFlag() cli.Flag {
	return &clidoc.Choice{
		StringFlag: &cli.StringFlag{
			Name:  "purge",
			Value: "exact",
			Usage: "what to leave out that a resumed training wrote again: exact, python or data-server (as these loaders of TensorBoard do), none",
		},
		Values: []string{"exact", "python", "data-server", "none"},
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
		ArgsUsage: "PATH...",
		Description: "SIZE is that of the values of a tag; with --json there are also the files of a run,\n" +
			"their size, and how many points were left out.",
		Flags:  []cli.Flag{jsonFlag(), runFlag(), tagFlag(), purgeFlag()},
		Action: ls,
	}
}

func jsonFlag() cli.Flag { return &cli.BoolFlag{Name: "json", Usage: "print JSON"} }

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
	Tag       string  `json:"tag"`
	Plugin    string  `json:"plugin"`
	Points    int     `json:"points"`
	FirstStep int64   `json:"first_step"`
	LastStep  int64   `json:"last_step"`
	FirstTime number  `json:"first_wall_time"`
	LastTime  number  `json:"last_wall_time"`
	Bytes     int64   `json:"bytes"`
	Last      *number `json:"last_value,omitempty"` // of scalars
}

func ls(c *cli.Context) error {
	garbage.CollectLate()
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	mode, err := purgeMode(c)
	if err != nil {
		return err
	}
	tags, err := selected(c, "tag")
	if err != nil {
		return err
	}
	s, err := openSource(c, args...)
	if err != nil {
		return err
	}
	report := newReporter(c)
	views, err := s.views(s.runs, mode, report)
	if err != nil {
		return err
	}
	infos := []runInfo{}
	for _, v := range views {
		infos = append(infos, describeRun(v, tags))
	}
	if c.Bool("json") {
		err = printJSON(c.App.Writer, infos)
	} else {
		err = printRuns(c, infos)
	}
	if err != nil {
		return err
	}
	return report.result()
}

func describeRun(v *view, tags *regexp.Regexp) runInfo {
	info := runInfo{Run: v.run.Name, Files: v.run.Files, Events: v.events, Purged: v.purged, Tags: []tagInfo{}}
	for _, f := range v.run.Files {
		if stat, err := os.Stat(f); err == nil {
			info.Bytes += stat.Size()
		}
	}
	for _, series := range v.series {
		if !tags.MatchString(series.tag) {
			continue
		}
		t := tagInfo{
			Tag: series.tag, Plugin: series.plugin, Points: series.points,
			FirstStep: series.first.step, LastStep: series.last.step,
			FirstTime: number(series.first.wall), LastTime: number(series.last.wall),
			Bytes: series.bytes,
		}
		if t.Plugin == summary.PluginScalars {
			t.Last = (*number)(series.lastValue)
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

func printRuns(c *cli.Context, infos []runInfo) error {
	t := terminal.NewTable("RUN", "TAG", "PLUGIN", "POINTS", "STEPS", "SIZE", "LAST")
	for _, info := range infos {
		for _, tag := range info.Tags {
			last := ""
			if tag.Last != nil {
				last = strconv.FormatFloat(float64(*tag.Last), 'g', 6, 64)
			}
			t.Add(shown(info.Run), shown(tag.Tag), orDash(tag.Plugin), strconv.Itoa(tag.Points),
				fmt.Sprintf("%d..%d", tag.FirstStep, tag.LastStep), terminal.Size(tag.Bytes), last)
		}
		if len(info.Tags) == 0 {
			t.Add(shown(info.Run), "-", "-", "0")
		}
	}
	return t.Print(c.App.Writer, screenOf(c).style)
}
