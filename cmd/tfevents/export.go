package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/tfevents"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "print the scalars of runs as CSV or JSON",
		ArgsUsage: "PATH",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "csv", Usage: "csv (a row for each point), wide (a row for each step, a column for each tag) or json"},
			&cli.StringFlag{Name: "run", Usage: "only runs that match the `REGEXP`"},
			&cli.StringFlag{Name: "tag", Usage: "only tags that match the `REGEXP`"},
			purgeFlag(),
		},
		Action: export,
	}
}

// scalarPoint is a point as export --format json prints it. JSON has no NaN and
// no infinity: Value is then a string.
type scalarPoint struct {
	Run      string  `json:"run"`
	Tag      string  `json:"tag"`
	Step     int64   `json:"step"`
	WallTime float64 `json:"wall_time"`
	Value    number  `json:"value"`
}

// number is a float64 whatever its value.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(formatNumber(x))
	}
	return json.Marshal(float64(n))
}

// formatNumber writes what is no number as TensorBoard does.
func formatNumber(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

var exportFormats = map[string]func(io.Writer, []scalarPoint) error{
	"csv": exportLong, "wide": exportWide, "json": exportJSON,
}

func export(c *cli.Context) error {
	path, err := oneArg(c, "PATH")
	if err != nil {
		return err
	}
	print, ok := exportFormats[c.String("format")]
	if !ok {
		return usagef("export: --format %s: want csv, wide or json", c.String("format"))
	}
	report := newReporter(c)
	points, err := scalars(c, path, report)
	if err != nil {
		return err
	}
	if err := print(c.App.Writer, points); err != nil {
		return err
	}
	if len(points) == 0 && report.count == 0 {
		return fmt.Errorf("%w: no scalars in %s match", errNothing, path)
	}
	return report.result()
}

// scalars reads the points that the flags of a command select.
func scalars(c *cli.Context, path string, report *reporter) ([]scalarPoint, error) {
	mode, err := purgeMode(c)
	if err != nil {
		return nil, err
	}
	runs, err := regexp.Compile(c.String("run"))
	if err != nil {
		return nil, usagef("%s: --run: %w", c.Command.Name, err)
	}
	tags, err := regexp.Compile(c.String("tag"))
	if err != nil {
		return nil, usagef("%s: --tag: %w", c.Command.Name, err)
	}
	s, err := openSource(path)
	if err != nil {
		return nil, err
	}
	points := []scalarPoint{}
	for _, run := range s.runs {
		if err := c.Context.Err(); err != nil {
			return nil, err
		}
		if !runs.MatchString(run.Name) {
			continue
		}
		d := s.read(run, mode, report)
		for _, series := range d.Series {
			if series.Plugin() == tfevents.PluginScalars && tags.MatchString(series.Tag) {
				points = appendPoints(points, run.Name, series)
			}
		}
	}
	return points, nil
}

func appendPoints(points []scalarPoint, run string, s *tfevents.Series) []scalarPoint {
	for _, p := range s.Points {
		if x, ok := tfevents.ScalarOf(p.Value); ok {
			points = append(points, scalarPoint{run, s.Tag, p.Step, p.WallTime, number(x)})
		}
	}
	return points
}

func exportJSON(w io.Writer, points []scalarPoint) error { return printJSON(w, points) }

func exportLong(w io.Writer, points []scalarPoint) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"run", "tag", "step", "wall_time", "value"}); err != nil {
		return err
	}
	for _, p := range points {
		row := []string{p.Run, p.Tag, strconv.FormatInt(p.Step, 10), formatNumber(p.WallTime), formatNumber(float64(p.Value))}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// wideTable holds points by run, step and tag.
type wideTable struct {
	runs, tags []string // in the order in which they were first seen
	steps      map[string][]int64
	cells      map[cellID]number
	rows       map[rowID]bool
}

type rowID struct {
	run  string
	step int64
}

type cellID struct {
	rowID
	tag string
}

func newWideTable(points []scalarPoint) *wideTable {
	t := &wideTable{steps: make(map[string][]int64), cells: make(map[cellID]number), rows: make(map[rowID]bool)}
	knownTag := make(map[string]bool)
	for _, p := range points {
		id := rowID{p.Run, p.Step}
		if t.steps[p.Run] == nil {
			t.runs = append(t.runs, p.Run)
		}
		if !knownTag[p.Tag] {
			knownTag[p.Tag] = true
			t.tags = append(t.tags, p.Tag)
		}
		if !t.rows[id] {
			t.rows[id] = true
			t.steps[p.Run] = append(t.steps[p.Run], p.Step)
		}
		t.cells[cellID{id, p.Tag}] = p.Value
	}
	return t
}

// exportWide prints a row for each step of a run, in the order of steps. Where a
// tag has several points at one step, the last one counts.
func exportWide(w io.Writer, points []scalarPoint) error {
	t := newWideTable(points)
	out := csv.NewWriter(w)
	if err := out.Write(append([]string{"run", "step"}, t.tags...)); err != nil {
		return err
	}
	for _, run := range t.runs {
		slices.Sort(t.steps[run])
		for _, step := range t.steps[run] {
			row := []string{run, strconv.FormatInt(step, 10)}
			for _, tag := range t.tags {
				cell := ""
				if x, ok := t.cells[cellID{rowID{run, step}, tag}]; ok {
					cell = formatNumber(float64(x))
				}
				row = append(row, cell)
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
