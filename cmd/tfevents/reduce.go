package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

func reduceCommand() *cli.Command {
	return &cli.Command{
		Name:      "reduce",
		Usage:     "print mean, standard deviation, smallest and largest value of the scalars of several runs",
		ArgsUsage: "PATH...",
		Description: "A row for each tag and step that a run has; the column \"runs\" says how many have it.\n" +
			"The standard deviation is that of these runs, not an estimate for others.",
		Flags: []cli.Flag{
			formatFlag("csv or json", "csv", "json"),
			jsonFlag(),
			outputFlag(),
			runFlag(),
			tagFlag(),
			&cli.IntFlag{Name: "min-runs", Value: 1, Usage: "leave out steps that fewer than `N` runs have"},
			purgeFlag(),
		},
		Action: reduce,
	}
}

// reduced is what several runs say about one step of a tag.
type reduced struct {
	Tag  string `json:"tag"`
	Step int64  `json:"step"`
	Runs int    `json:"runs"`
	Mean number `json:"mean"`
	Std  number `json:"std"`
	Min  number `json:"min"`
	Max  number `json:"max"`
}

func reduce(c *cli.Context) error {
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	print := reducedCSV
	format, err := formatOf(c)
	if err != nil {
		return err
	}
	switch format {
	case "csv":
	case "json":
		print = func(w io.Writer, rows []reduced) error { return printJSON(w, rows) }
	default:
		return usagef("reduce: --format %s: want csv or json", format)
	}
	report := newReporter(c)
	points, err := scalars(c, args, report)
	if err != nil {
		return err
	}
	rows := reducePoints(points, c.Int("min-runs"))
	if len(rows) == 0 && report.count == 0 {
		return fmt.Errorf("%w: no scalars in %s match", errNothing, strings.Join(args, ", "))
	}
	if err := toOutput(c, func(w io.Writer) error { return print(w, rows) }); err != nil {
		return err
	}
	return report.result()
}

// reducePoints brings the runs together. Where a run has several points of a tag
// at one step, its last one counts.
func reducePoints(points []scalarPoint, minRuns int) []reduced {
	t := newWideTable(slices.Values(points))
	rows := []reduced{}
	for _, tag := range t.tags {
		values := make(map[int64][]float64)
		var steps []int64
		for _, run := range t.runs {
			for _, step := range t.steps[run] {
				x, ok := t.cells[cellID{rowID{run, step}, tag}]
				if !ok {
					continue
				}
				if values[step] == nil {
					steps = append(steps, step)
				}
				values[step] = append(values[step], float64(x))
			}
		}
		slices.Sort(steps)
		for _, step := range steps {
			if v := values[step]; len(v) >= minRuns {
				rows = append(rows, reduceValues(tag, step, v))
			}
		}
	}
	return rows
}

func reduceValues(tag string, step int64, values []float64) reduced {
	n := float64(len(values))
	lo, hi, sum := values[0], values[0], 0.0
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
		sum += v
	}
	mean, squares := sum/n, 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return reduced{
		Tag: tag, Step: step, Runs: len(values),
		Mean: number(mean), Std: number(math.Sqrt(squares / n)), Min: number(lo), Max: number(hi),
	}
}

func reducedCSV(w io.Writer, rows []reduced) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"tag", "step", "runs", "mean", "std", "min", "max"}); err != nil {
		return err
	}
	for _, r := range rows {
		row := []string{r.Tag, strconv.FormatInt(r.Step, 10), strconv.Itoa(r.Runs)}
		for _, x := range []number{r.Mean, r.Std, r.Min, r.Max} {
			row = append(row, formatNumber(float64(x)))
		}
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
