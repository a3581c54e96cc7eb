package main

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// seriesOf is a series of so many scalars.
func seriesOf(tag string, points int) seriesView {
	odd := []float64{0.1, math.NaN(), math.Inf(-1), 1e-9, 3, float64(float32(0.1))}
	return seriesView{tag: tag, plugin: summary.PluginScalars, points: points, scalars: func(yield func(stamp, float64) bool) {
		for i := range points {
			if !yield(stamp{int64(i - 1), 1.7e9 + float64(i)/3}, odd[i%len(odd)]) {
				return
			}
		}
	}}
}

// TestScalarsAsCSV asks for the text of rows printed one by one: of groups of series, of
// one that is longer than a group, of the rest, and of names that need quotes.
func TestScalarsAsCSV(t *testing.T) {
	var views []*view
	for run := range 3 {
		v := &view{run: tfevents.Run{Name: fmt.Sprintf("run, %d", run)}}
		for i := range 40 {
			v.series = append(v.series, seriesOf(fmt.Sprintf("tag %q\n%d", "loss", i), 7000/(i+1)))
		}
		v.series = append(v.series, seriesOf("", 0), seriesOf("long", 2*atOnce+run))
		views = append(views, v)
	}
	s := &selection{views: views, plugin: summary.PluginScalars, tags: regexp.MustCompile("")}
	var got, want bytes.Buffer
	if err := printScalars(s, &got, "csv"); err != nil {
		t.Fatal(err)
	}
	if err := rowsAsCSV(&want, s.scalars()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Fatalf("%d bytes for %d, or others", got.Len(), want.Len())
	}
}

// TestScalarsAsCSVFail asks for the error of what is written to, wherever it comes.
func TestScalarsAsCSVFail(t *testing.T) {
	v := &view{series: []seriesView{seriesOf("a", atOnce-1), seriesOf("b", 5), seriesOf("c", 3*atOnce), seriesOf("d", 4)}}
	s := &selection{views: []*view{v}, plugin: summary.PluginScalars, tags: regexp.MustCompile("")}
	for room := range 7 {
		w := &fullAfter{room}
		if err := printScalars(s, w, "csv"); err != errFull {
			t.Errorf("with room for %d writes: %v", room, err)
		}
	}
}

var errFull = fmt.Errorf("full")

// fullAfter fails after so many writes.
type fullAfter struct{ room int }

func (w *fullAfter) Write(b []byte) (int, error) {
	if w.room == 0 {
		return 0, errFull
	}
	w.room--
	return len(b), nil
}

func TestDistinctColumns(t *testing.T) {
	for _, tc := range []struct{ name, names, want string }{
		{"different", "run step loss", "run step loss"},
		{"a tag like a column", "run step loss step", "run step loss step_(2)"},
		{"several like a column", "run lr run run", "run lr run_(2) run_(3)"},
		{"the number is a name too", "run step step step_(2) step_(3)", "run step step_(4) step_(2) step_(3)"},
	} {
		names := strings.Fields(tc.names)
		for i := range names {
			names[i] = strings.ReplaceAll(names[i], "_", " ")
		}
		got := strings.ReplaceAll(strings.Join(distinct(names), "|"), " ", "_")
		if got = strings.ReplaceAll(got, "|", " "); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}
