package main

import (
	"io/fs"
	"iter"
	"os"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/tfrecord"
)

// view is what the commands that list and draw need of a run. It comes from an
// index, or from the whole run in memory where that cannot be read again.
type view struct {
	run    tfevents.Run
	events int
	purged int
	series []seriesView
}

type seriesView struct {
	tag, plugin string
	points      int
	bytes       int64
	first, last stamp
	lastValue   *float64 // nil if the last point is not a scalar
	scalars     iter.Seq2[stamp, float64]
}

// stamp is where a point stands in its series.
type stamp struct {
	step int64
	wall float64
}

// views reads the given runs, those that can be indexed side by side, and reports
// their damage.
func (s *source) views(runs []tfevents.Run, mode tfevents.Purge, report *reporter) ([]*view, error) {
	options := &tfevents.RunOptions{Purge: mode, MaxSize: maxRecord}
	indexed := tfevents.IndexRuns(s, slices.DeleteFunc(slices.Clone(runs), func(r tfevents.Run) bool { return !s.isPlain(r) }), options)
	views := make([]*view, 0, len(runs))
	for _, run := range runs {
		if len(indexed) > 0 && indexed[0].Name == run.Name {
			views = append(views, s.viewOfIndex(run, indexed[0]))
			report.all(indexed[0].Damage)
			indexed = indexed[1:]
		} else {
			d := tfevents.ReadRun(s, run, options)
			views = append(views, viewOfData(run, d))
			report.all(d.Damage)
		}
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// isPlain reports whether all files of a run can be read from any place in them.
func (s *source) isPlain(run tfevents.Run) bool {
	return !slices.ContainsFunc(run.Files, func(name string) bool {
		if name == stdinName {
			return true
		}
		in, err := s.open(name)
		if err != nil {
			return false // which is damage, and said when it is read
		}
		defer in.Close()
		return in.compression != tfrecord.Uncompressed
	})
}

func (s *source) viewOfIndex(run tfevents.Run, x *tfevents.RunIndex) *view {
	v := &view{run: run, events: x.Events, purged: x.Purged}
	for _, series := range x.Series {
		one := seriesView{tag: series.Tag, plugin: series.Plugin(), points: series.Len(), bytes: series.Bytes()}
		var last tfevents.IndexPoint
		begun := false
		for last = range series.Points() {
			if !begun {
				one.first, begun = stamp{last.Step, last.WallTime}, true
			}
		}
		one.last = stamp{last.Step, last.WallTime}
		one.scalars = indexScalars(x, series)
		if one.plugin == summary.PluginScalars { // others need not be read, and may be large
			for _, value := range indexPoints(x, []tfevents.IndexPoint{last}) {
				one.lastValue = &value
			}
		}
		v.series = append(v.series, one)
	}
	return v
}

// indexScalars walks the scalars of a series.
func indexScalars(x *tfevents.RunIndex, series *tfevents.SeriesIndex) iter.Seq2[stamp, float64] {
	return func(yield func(stamp, float64) bool) {
		indexPoints(x, slices.Collect(series.Points()))(yield)
	}
}

// indexPoints walks those of the points that are scalars; those of other types
// than float32 are read from the files.
func indexPoints(x *tfevents.RunIndex, points []tfevents.IndexPoint) iter.Seq2[stamp, float64] {
	return func(yield func(stamp, float64) bool) {
		others := slices.DeleteFunc(slices.Clone(points), func(p tfevents.IndexPoint) bool {
			_, ok := p.Scalar()
			return ok
		})
		next, stop := iter.Pull2(x.Values(others))
		defer stop()
		for _, p := range points {
			number, ok := p.Scalar()
			if !ok {
				value, err, _ := next()
				if number, ok = summary.ScalarOf(value); err != nil || !ok {
					continue
				}
			}
			if !yield(stamp{p.Step, p.WallTime}, number) {
				return
			}
		}
	}
}

func viewOfData(run tfevents.Run, d *tfevents.RunData) *view {
	v := &view{run: run, events: d.Events, purged: d.Purged}
	for _, series := range d.Series {
		first, last := series.Points[0], series.Points[len(series.Points)-1]
		one := seriesView{
			tag: series.Tag, plugin: series.Plugin(), points: len(series.Points),
			first: stamp{first.Step, first.WallTime}, last: stamp{last.Step, last.WallTime},
		}
		if x, ok := summary.ScalarOf(last.Value); ok {
			one.lastValue = &x
		}
		for _, p := range series.Points {
			one.bytes += int64(proto.Size(p.Value))
		}
		one.scalars = func(yield func(stamp, float64) bool) {
			for _, p := range series.Points {
				if x, ok := summary.ScalarOf(p.Value); ok && !yield(stamp{p.Step, p.WallTime}, x) {
					return
				}
			}
		}
		v.series = append(v.series, one)
	}
	return v
}

// Stat lets an index see whether a file has changed; the standard input is gone
// once it has been read.
func (s *source) Stat(name string) (fs.FileInfo, error) {
	if name == stdinName {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return os.Stat(name)
}
