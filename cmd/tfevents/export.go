package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/clidoc"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "print the scalars of runs as CSV, JSON or Parquet",
		ArgsUsage: "PATH...",
		Description: "The formats csv, json and parquet have a row for each point: run, tag, step, wall_time\n" +
			"and value. wide is CSV with a row for each step of a run and a column for each tag.",
		Flags: []cli.Flag{
			formatFlag("csv, wide, json or parquet", exportNames...),
			&cli.BoolFlag{Name: "wide", Usage: "with csv: a row for each step, a column for each tag"},
			jsonFlag(),
			outputFlag(),
			&cli.StringFlag{Name: "run", Usage: "only runs that match the `REGEXP`"},
			&cli.StringFlag{Name: "tag", Usage: "only tags that match the `REGEXP`"},
			purgeFlag(),
		},
		Action: export,
	}
}

func formatFlag(usage string, values ...string) cli.Flag {
	return &clidoc.Choice{
		StringFlag: &cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: values[0], Usage: usage},
		Values:     values,
	}
}

// formatOf returns the format that a command is to print; --json is short for
// one of them.
func formatOf(c *cli.Context) (string, error) {
	format := c.String("format")
	if !c.Bool("json") {
		return format, nil
	}
	if c.IsSet("format") && format != "json" {
		return "", usagef("%s: --json and --format %s exclude each other", c.Command.Name, format)
	}
	return "json", nil
}

func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`, which must not exist, instead of the standard output"}
}

// toOutput calls print with what --output says.
func toOutput(c *cli.Context, print func(io.Writer) error) error {
	name := c.String("output")
	if name == "" {
		return print(c.App.Writer)
	}
	return createFile(name, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<16)
		if err := print(w); err != nil {
			return err
		}
		return w.Flush()
	})
}

// scalarPoint is a point as export --format json prints it. JSON has no NaN and
// no infinity: Value is then a string.
type scalarPoint struct {
	Run      string `json:"run"`
	Tag      string `json:"tag"`
	Step     int64  `json:"step"`
	WallTime number `json:"wall_time"`
	Value    number `json:"value"`
}

// number is a float64 whatever its value.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if x := float64(n); math.IsNaN(x) || math.IsInf(x, 0) {
		return json.Marshal(formatNumber(x))
	}
	return json.Marshal(float64(n))
}

// formatNumber writes what is not a number as TensorBoard does.
func formatNumber(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	// As JSON has it: times in plain digits, however long.
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.FormatFloat(x, format, -1, 64)
}

var exportNames = []string{"csv", "wide", "json", "parquet"}

var exportFormats = map[string]func(io.Writer, iter.Seq[scalarPoint]) error{
	"csv": exportLong, "wide": exportWide, "json": exportJSON, "parquet": exportParquet,
}

func exportFormat(c *cli.Context) (func(io.Writer, iter.Seq[scalarPoint]) error, error) {
	format, err := formatOf(c)
	if err != nil {
		return nil, err
	}
	print, ok := exportFormats[format]
	switch {
	case !ok:
		return nil, usagef("export: --format %s: want csv, wide, json or parquet", format)
	case c.Bool("wide") && (format == "json" || format == "parquet"):
		return nil, usagef("export: --wide is a form of csv, not of %s", format)
	case c.Bool("wide"):
		return exportWide, nil
	case format == "parquet" && c.String("output") == "" && screenOf(c).isTerminal:
		return nil, usagef("export: Parquet is binary: write it to a file with --output FILE")
	}
	return print, nil
}

func export(c *cli.Context) error {
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	print, err := exportFormat(c)
	if err != nil {
		return err
	}
	report := newReporter(c)
	points, err := eachScalar(c, args, report)
	if err != nil {
		return err
	}
	if isEmpty(points) && report.count == 0 {
		return fmt.Errorf("%w: no scalars in %s match", errNothing, strings.Join(args, ", "))
	}
	if err := toOutput(c, func(w io.Writer) error { return print(w, points) }); err != nil {
		return err
	}
	return report.result()
}

// isEmpty reports whether there are no points.
func isEmpty(points iter.Seq[scalarPoint]) bool {
	for range points {
		return false
	}
	return true
}

// scalars reads the points that the flags of a command select.
func scalars(c *cli.Context, paths []string, report *reporter) ([]scalarPoint, error) {
	points, err := eachScalar(c, paths, report)
	if err != nil {
		return nil, err
	}
	return slices.AppendSeq([]scalarPoint{}, points), nil
}

// eachScalar walks those points, which are in an index until then. They can be
// walked several times.
func eachScalar(c *cli.Context, paths []string, report *reporter) (iter.Seq[scalarPoint], error) {
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
	s, err := openSource(c, paths...)
	if err != nil {
		return nil, err
	}
	views, err := s.views(slices.DeleteFunc(s.runs, func(r tfevents.Run) bool { return !runs.MatchString(r.Name) }), mode, report)
	if err != nil {
		return nil, err
	}
	return func(yield func(scalarPoint) bool) {
		for _, v := range views {
			for _, s := range v.series {
				if s.plugin != summary.PluginScalars || !tags.MatchString(s.tag) {
					continue
				}
				for at, x := range s.scalars {
					if !yield(scalarPoint{v.run.Name, s.tag, at.step, number(at.wall), number(x)}) {
						return
					}
				}
			}
		}
	}, nil
}

// exportJSON prints what printJSON does of a list of all points.
func exportJSON(w io.Writer, points iter.Seq[scalarPoint]) error {
	var one bytes.Buffer
	e := json.NewEncoder(&one)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", "  ")
	between, end := "[\n  ", "[]\n"
	for p := range points {
		one.Reset()
		if err := e.Encode(p); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", between, bytes.TrimSuffix(one.Bytes(), []byte("\n"))); err != nil {
			return err
		}
		between, end = ",\n  ", "\n]\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

func exportLong(w io.Writer, points iter.Seq[scalarPoint]) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"run", "tag", "step", "wall_time", "value"}); err != nil {
		return err
	}
	for p := range points {
		row := []string{p.Run, p.Tag, strconv.FormatInt(p.Step, 10), formatNumber(float64(p.WallTime)), formatNumber(float64(p.Value))}
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

func newWideTable(points iter.Seq[scalarPoint]) *wideTable {
	t := &wideTable{steps: make(map[string][]int64), cells: make(map[cellID]number), rows: make(map[rowID]bool)}
	knownTag := make(map[string]bool)
	for p := range points {
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
func exportWide(w io.Writer, points iter.Seq[scalarPoint]) error {
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
