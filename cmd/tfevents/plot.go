package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

func plotCommand() *cli.Command {
	return &cli.Command{
		Name:        "plot",
		Usage:       "draw scalars in the terminal",
		ArgsUsage:   "PATH...",
		Description: "One chart for each run and tag, steps to the right.",
		Flags: []cli.Flag{
			runFlag(),
			tagFlag(),
			&cli.IntFlag{Name: "width", Usage: "columns of a chart (default: the terminal's, or 80)"},
			&cli.IntFlag{Name: "height", Value: 12, Usage: "rows of a chart"},
			purgeFlag(),
		},
		Action: plot,
	}
}

// Sizes of a chart.
const (
	labelWidth = 11 // of the values at the left
	leastWidth = labelWidth + 12
	mostWidth  = 1000
	dotsAcross = 2 // a Braille character has two columns of four dots
	dotsDown   = 4
)

func plot(c *cli.Context) error {
	args, err := someArgs(c, "PATH")
	if err != nil {
		return err
	}
	width, height := c.Int("width"), c.Int("height")
	if width == 0 {
		width = max(leastWidth, min(terminal.Width(screenOf(c).stdout), mostWidth))
	}
	if width < leastWidth || width > mostWidth || height < 2 || height > mostWidth {
		return usagef("plot: a chart of %d columns and %d rows: want %d to %d columns, 2 to %d rows", width, height, leastWidth, mostWidth, mostWidth)
	}
	report := newReporter(c)
	points, err := scalars(c, args, report)
	if err != nil {
		return err
	}
	for len(points) > 0 {
		n := 1
		for n < len(points) && points[n].Run == points[0].Run && points[n].Tag == points[0].Tag {
			n++
		}
		if err := drawSeries(c.App.Writer, screenOf(c).style, points[:n], width, height); err != nil {
			return err
		}
		points = points[n:]
		if len(points) == 0 {
			return report.result()
		}
	}
	if report.count > 0 {
		return report.result()
	}
	return fmt.Errorf("%w: no scalars in %s match", errNothing, strings.Join(args, ", "))
}

// drawSeries draws the points of one tag of one run. Those that are not numbers
// are counted, not drawn.
func drawSeries(w io.Writer, style terminal.Style, points []scalarPoint, width, height int) error {
	var drawn []scalarPoint
	for _, p := range points {
		if x := float64(p.Value); !math.IsNaN(x) && !math.IsInf(x, 0) {
			drawn = append(drawn, p)
		}
	}
	title := style.Heading(fmt.Sprintf("%s  %s", shown(points[0].Run), shown(points[0].Tag)))
	if n := len(points) - len(drawn); n > 0 {
		title += fmt.Sprintf("  (not drawn, for they are not finite: %d)", n)
	}
	if _, err := fmt.Fprintln(w, title); err != nil || len(drawn) == 0 {
		return err
	}
	c := newChart(drawn, width-labelWidth-2, height)
	for row, line := range c.lines() {
		if _, err := fmt.Fprintf(w, "%*s ┤%s\n", labelWidth, c.label(row), style.Data(line)); err != nil {
			return err
		}
	}
	first, last := fmt.Sprint(c.firstStep), fmt.Sprint(c.lastStep)
	gap := max(1, c.columns-len(first)-len(last))
	_, err := fmt.Fprintf(w, "%*s  %s%s%s\n\n", labelWidth, "step", first, strings.Repeat(" ", gap), last)
	return err
}

// chart is a picture of dots, eight to a character.
type chart struct {
	columns, rows       int
	firstStep, lastStep int64
	lo, hi              float64
	cells               []rune // offsets from an empty Braille character
}

func newChart(points []scalarPoint, columns, rows int) *chart {
	c := &chart{columns: columns, rows: rows, cells: make([]rune, columns*rows)}
	c.firstStep, c.lastStep = points[0].Step, points[0].Step
	c.lo, c.hi = float64(points[0].Value), float64(points[0].Value)
	for _, p := range points {
		c.firstStep, c.lastStep = min(c.firstStep, p.Step), max(c.lastStep, p.Step)
		c.lo, c.hi = min(c.lo, float64(p.Value)), max(c.hi, float64(p.Value))
	}
	for _, p := range points {
		across := place(float64(p.Step), float64(c.firstStep), float64(c.lastStep), columns*dotsAcross)
		up := place(float64(p.Value), c.lo, c.hi, rows*dotsDown)
		c.set(across, rows*dotsDown-1-up)
	}
	return c
}

// place returns which of n places from lo to hi x falls on; the middle one if
// all are the same.
func place(x, lo, hi float64, n int) int {
	span := hi/2 - lo/2 // halved: the difference may be too large for a double
	if !(span > 0) {
		return n / 2
	}
	return min(n-1, int((x/2-lo/2)/span*float64(n)))
}

// brailleDots holds the bits of a character's dots, row by row.
var brailleDots = [dotsDown][dotsAcross]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func (c *chart) set(x, y int) {
	c.cells[y/dotsDown*c.columns+x/dotsAcross] |= brailleDots[y%dotsDown][x%dotsAcross]
}

func (c *chart) lines() []string {
	lines := make([]string, c.rows)
	for row := range lines {
		var b strings.Builder
		for _, dots := range c.cells[row*c.columns : (row+1)*c.columns] {
			if dots == 0 {
				b.WriteByte(' ')
			} else {
				b.WriteRune(0x2800 + dots)
			}
		}
		lines[row] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// label returns the value at the left of a row: the first has the largest, the
// last the least.
func (c *chart) label(row int) string {
	switch row {
	case 0:
		return fmt.Sprintf("%.5g", c.hi)
	case c.rows - 1:
		return fmt.Sprintf("%.5g", c.lo)
	}
	return ""
}
