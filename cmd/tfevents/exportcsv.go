package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"strconv"

	"github.com/trainerd/trainerd/internal/parallel"
)

// atOnce is how many points are put into text at once, and before it is written.
const atOnce = 1 << 17

// printScalars is [printRows] for scalars. CSV may have millions of lines, so
// several series are formatted at once.
func printScalars(s *selection, w io.Writer, format string) error {
	if format != "csv" {
		return printRows(w, format, s.scalars())
	}
	if err := rowsAsCSV(w, func(func(scalarPoint) bool) {}); err != nil { // the names
		return err
	}
	var group []scalarText
	points := 0
	for v, series := range s.series() {
		group = appendText(group, v.run.Name, series)
		if points += series.points; points < atOnce {
			continue
		}
		if err := writeTexts(w, group); err != nil {
			return err
		}
		group, points = group[:0], 0
	}
	return writeTexts(w, group)
}

// scalarText is a series and its text.
type scalarText struct {
	run    string
	series seriesView
	text   []byte
}

// appendText appends a series, with the memory for the text of an earlier one.
func appendText(group []scalarText, run string, series seriesView) []scalarText {
	one := scalarText{run: run, series: series}
	if n := len(group); n < cap(group) {
		one.text = group[:n+1][n].text[:0]
	}
	return append(group, one)
}

// writeTexts writes a group of series. One alone may be of any size.
func writeTexts(w io.Writer, group []scalarText) error {
	if len(group) == 1 {
		return group[0].lines(func(text []byte) ([]byte, error) {
			_, err := w.Write(text)
			return text[:0], err
		})
	}
	parallel.Each(context.Background(), len(group), func(i int) {
		g := &group[i]
		g.lines(func(text []byte) ([]byte, error) { g.text = text; return text, nil })
	})
	for i := range group {
		if _, err := w.Write(group[i].text); err != nil {
			return err
		}
	}
	return nil
}

// lines puts the points into text. From time to time, and at the end, it hands over
// the text so far and continues with what it gets back.
func (t *scalarText) lines(handOver func([]byte) ([]byte, error)) error {
	begin, err := csvCells(t.run, t.series.tag)
	if err != nil {
		return err
	}
	text := t.text
	lines := 0
	for at, x := range t.series.scalars {
		text = append(append(text, begin...), ',')
		text = append(strconv.AppendInt(text, at.step, 10), ',')
		text = append(appendNumber(text, at.wall), ',')
		text = append(appendNumber(text, x), '\n')
		if lines++; lines%atOnce == 0 {
			if text, err = handOver(text); err != nil {
				return err
			}
		}
	}
	_, err = handOver(text)
	return err
}

// csvCells returns cells as CSV has them, quoted where need be.
func csvCells(cells ...string) ([]byte, error) {
	var line bytes.Buffer
	w := csv.NewWriter(&line)
	if err := w.Write(cells); err != nil {
		return nil, err
	}
	w.Flush()
	return bytes.TrimSuffix(line.Bytes(), []byte("\n")), w.Error()
}
