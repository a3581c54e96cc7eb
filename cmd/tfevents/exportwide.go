package main

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// exportWide prints a row for each step of a run, in the order of steps. Where a
// tag has several points at one step, the last one counts.
func (s *selection) exportWide(w io.Writer) error {
	header := []string{"run", "step"}
	place := make(map[string]int) // of a tag in the header
	for _, series := range s.series() {
		if _, ok := place[series.tag]; !ok && hasScalars(series) {
			place[series.tag] = len(header)
			header = append(header, series.tag)
		}
	}
	out := csv.NewWriter(w)
	row := make([]string, len(header))
	if err := out.Write(distinct(header)); err != nil {
		return err
	}
	var columns []*wideColumn // of one run
	var run *view
	for v, series := range s.series() {
		if v != run {
			if err := writeWide(out, row, columns); err != nil {
				return err
			}
			run, columns, row[0] = v, nil, v.run.Name
		}
		if hasScalars(series) {
			columns = append(columns, newWideColumn(place[series.tag], series))
		}
	}
	if err := writeWide(out, row, columns); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

func hasScalars(series seriesView) bool {
	for range series.scalars {
		return true
	}
	return false
}

// wideColumn is a series by its steps.
type wideColumn struct {
	place  int // in a row
	points []widePoint
}

type widePoint struct {
	step  int64
	value float64
}

func newWideColumn(place int, series seriesView) *wideColumn {
	c := &wideColumn{place: place, points: make([]widePoint, 0, series.points)}
	for at, x := range series.scalars {
		c.points = append(c.points, widePoint{at.step, x})
	}
	slices.SortStableFunc(c.points, func(a, b widePoint) int { return cmp.Compare(a.step, b.step) })
	return c
}

// take removes the points of a step, the lowest, and returns the last of them as a cell.
func (c *wideColumn) take(step int64) (cell string) {
	n := 0
	for n < len(c.points) && c.points[n].step == step {
		n++
	}
	if n > 0 {
		cell = formatNumber(c.points[n-1].value)
	}
	c.points = c.points[n:]
	return cell
}

// writeWide prints the rows of a run, whose name is the first cell of row.
func writeWide(out *csv.Writer, row []string, columns []*wideColumn) error {
	for {
		step, more := lowestStep(columns)
		if !more {
			return nil
		}
		clear(row[1:])
		row[1] = strconv.FormatInt(step, 10)
		for _, c := range columns {
			row[c.place] = c.take(step)
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
}

func lowestStep(columns []*wideColumn) (step int64, ok bool) {
	for _, c := range columns {
		if len(c.points) > 0 && (!ok || c.points[0].step < step) {
			step, ok = c.points[0].step, true
		}
	}
	return step, ok
}
