package main

import (
	"io/fs"
	"iter"
	"math"
	"os"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// view is what the commands that list and draw need of a run.
type view struct {
	run    tfevents.Run
	data   *tfevents.RunData
	events int
	purged int
	series []seriesView
}

type seriesView struct {
	source      *tfevents.Series
	tag, plugin string
	points      int
	bytes       int64
	first, last stamp
	lastValue   *float64 // nil if the last point is not a scalar
	scalars     iter.Seq2[stamp, float64]
}

// stamp is the place of a point in its series.
type stamp struct {
	step int64
	wall float64
}

// stampBits is a stamp to compare: of a time that is NaN, too.
type stampBits struct {
	step int64
	wall uint64
}

func (s stamp) bits() stampBits { return stampBits{s.step, math.Float64bits(s.wall)} }

// views reads the given runs, as many at once as there are processors, and reports
// their damage.
func (s *source) views(runs []tfevents.Run, mode tfevents.Purge, report *reporter) ([]*view, error) {
	read := tfevents.ReadRuns(s, runs, &tfevents.RunOptions{Purge: mode, MaxSize: maxRecord})
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	views := make([]*view, 0, len(runs))
	for i, d := range read {
		views = append(views, viewOf(runs[i], d))
		report.all(d.Damage)
	}
	return views, s.ctx.Err()
}

func viewOf(run tfevents.Run, d *tfevents.RunData) *view {
	v := &view{run: run, data: d, events: d.Events, purged: d.Purged}
	for _, series := range d.Series {
		one := seriesView{source: series, tag: series.Tag, plugin: series.Plugin(), points: series.Len(), bytes: series.Bytes()}
		first, last, ok := series.FirstLast()
		one.first, one.last = stamp{first.Step, first.WallTime}, stamp{last.Step, last.WallTime}
		one.scalars = scalarsOf(d, series)
		if ok && one.plugin == summary.PluginScalars { // others need not be read, and may be large
			one.lastValue = scalarAt(d, last)
		}
		v.series = append(v.series, one)
	}
	return v
}

// scalarsOf walks the scalars of a series.
func scalarsOf(d *tfevents.RunData, series *tfevents.Series) iter.Seq2[stamp, float64] {
	return func(yield func(stamp, float64) bool) {
		for p, x := range d.Scalars(series) {
			if !yield(stamp{p.Step, p.WallTime}, x) {
				return
			}
		}
	}
}

// scalarAt returns the value of a point that is a scalar, or nil.
func scalarAt(d *tfevents.RunData, p tfevents.Point) *float64 {
	x, ok := p.Scalar()
	if !ok {
		v, err := d.Value(p)
		if x, ok = decode.Scalar(v); err != nil || !ok {
			return nil
		}
	}
	return &x
}

// Stat lets a run see whether a file has changed; the standard input is gone
// once it has been read.
func (s *source) Stat(name string) (fs.FileInfo, error) {
	if name == stdinName {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return os.Stat(name)
}
