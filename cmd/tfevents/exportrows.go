package main

import (
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents"
	"github.com/trainerd/trainerd/tfevents/summary"
)

// selection is what an export prints: the series of a plugin that match.
type selection struct {
	views  []*view
	plugin string
	tags   *regexp.Regexp
	report *reporter
	files  *fileTree // where images and audio go
	err    error     // the first of a file that cannot be written
}

// series walks the selected series.
func (s *selection) series() iter.Seq2[*view, seriesView] {
	return func(yield func(*view, seriesView) bool) {
		for _, v := range s.views {
			for _, series := range v.series {
				if series.plugin == s.plugin && s.tags.MatchString(series.tag) && !yield(v, series) {
					return
				}
			}
		}
	}
}

func (s *selection) isEmpty() bool {
	for range s.series() {
		return false
	}
	return true
}

// values walks the selected values, as TensorBoard converts them. Those that cannot
// be read are reported.
func (s *selection) values() iter.Seq2[pointRow, *tfpb.Summary_Value] {
	return func(yield func(pointRow, *tfpb.Summary_Value) bool) {
		for v, series := range s.series() {
			points := slices.Collect(series.source.Points())
			i := -1
			for value, err := range v.data.Values(points) {
				i++
				if err != nil {
					s.report.damaged(err)
					continue
				}
				at := pointRow{v.run.Name, series.tag, points[i].Step, number(points[i].WallTime)}
				if !yield(at, summary.ModernValue(value)) {
					return
				}
			}
		}
	}
}

// exporters print the selected values of a plugin in one of the formats that have a
// row for each.
var exporters = map[string]func(s *selection, w io.Writer, format string) error{
	summary.PluginScalars: func(s *selection, w io.Writer, format string) error {
		return printRows(w, format, s.scalars())
	},
	summary.PluginHistograms: func(s *selection, w io.Writer, format string) error {
		return printRows(w, format, s.buckets())
	},
	summary.PluginText: func(s *selection, w io.Writer, format string) error {
		return printRows(w, format, s.texts())
	},
	summary.PluginPRCurves: func(s *selection, w io.Writer, format string) error {
		return printRows(w, format, s.curves())
	},
	summary.PluginImages: func(s *selection, w io.Writer, format string) error {
		return printRows(w, format, s.images())
	},
	summary.PluginAudio: func(s *selection, w io.Writer, format string) error {
		return printRows(w, format, s.clips())
	},
	summary.PluginHParams: func(s *selection, w io.Writer, format string) error {
		return printRows(w, format, s.hparams())
	},
}

// scalarPoint is a point of a scalar.
type scalarPoint struct {
	pointRow
	Value number `parquet:"value" json:"value"`
}

func (s *selection) scalars() iter.Seq[scalarPoint] {
	return func(yield func(scalarPoint) bool) {
		for v, series := range s.series() {
			for at, x := range series.scalars {
				if !yield(scalarPoint{pointRow{v.run.Name, series.tag, at.step, number(at.wall)}, number(x)}) {
					return
				}
			}
		}
	}
}

// bucketRow is one bucket of a histogram.
type bucketRow struct {
	pointRow
	Left  number `parquet:"bucket_left" json:"bucket_left"`
	Right number `parquet:"bucket_right" json:"bucket_right"`
	Count number `parquet:"bucket_count" json:"bucket_count"`
}

func (s *selection) buckets() iter.Seq[bucketRow] {
	return func(yield func(bucketRow) bool) {
		for at, v := range s.values() {
			rows := s.matrix(at, v, func(dims []*tfpb.TensorShapeProto_Dim) bool { return dims[1].GetSize() == 3 })
			for i := 0; i+3 <= len(rows); i += 3 {
				if !yield(bucketRow{at, number(rows[i]), number(rows[i+1]), number(rows[i+2])}) {
					return
				}
			}
		}
	}
}

// matrix returns the numbers of a value that is a matrix of the right shape, and
// reports what is another.
func (s *selection) matrix(at pointRow, v *tfpb.Summary_Value, fits func([]*tfpb.TensorShapeProto_Dim) bool) []float64 {
	t := v.GetTensor()
	dims := t.GetTensorShape().GetDim()
	numbers, ok := summary.Numbers(t)
	if !ok || len(dims) != 2 || !fits(dims) {
		s.odd(at)
		return nil
	}
	return numbers
}

// odd reports a value that is not what its plugin shows.
func (s *selection) odd(at pointRow) {
	s.report.damaged(fmt.Errorf("run %s, tag %q, step %d: the value is not one of plugin %s; see `tfevents check`", shown(at.Run), at.Tag, at.Step, s.plugin))
}

// curveRow is one threshold of a PR curve.
type curveRow struct {
	pointRow
	Threshold      number `parquet:"threshold" json:"threshold"`
	TruePositives  number `parquet:"true_positives" json:"true_positives"`
	FalsePositives number `parquet:"false_positives" json:"false_positives"`
	TrueNegatives  number `parquet:"true_negatives" json:"true_negatives"`
	FalseNegatives number `parquet:"false_negatives" json:"false_negatives"`
	Precision      number `parquet:"precision" json:"precision"`
	Recall         number `parquet:"recall" json:"recall"`
}

func (s *selection) curves() iter.Seq[curveRow] {
	return func(yield func(curveRow) bool) {
		for at, v := range s.values() {
			rows := s.matrix(at, v, func(dims []*tfpb.TensorShapeProto_Dim) bool { return dims[0].GetSize() == curveRows })
			n := len(rows) / curveRows
			for i := range n {
				x := func(row int) number { return number(rows[row*n+i]) }
				threshold := number(float64(i) / float64(max(n-1, 1)))
				if !yield(curveRow{at, threshold, x(0), x(1), x(2), x(3), x(4), x(5)}) {
					return
				}
			}
		}
	}
}

// textRow is one text of a value, which may hold an array of them.
type textRow struct {
	pointRow
	Index int64  `parquet:"index" json:"index"` // in the array, row by row
	Text  string `parquet:"text" json:"text"`
}

func (s *selection) texts() iter.Seq[textRow] {
	return func(yield func(textRow) bool) {
		for at, v := range s.values() {
			if v.GetTensor().GetDtype() != tfpb.DataType_DT_STRING {
				s.odd(at)
				continue
			}
			for i, text := range v.GetTensor().GetStringVal() {
				if !yield(textRow{at, int64(i), strings.ToValidUTF8(string(text), string(utf8.RuneError))}) {
					return
				}
			}
		}
	}
}

// runsMatching returns the runs whose names match.
func runsMatching(runs []tfevents.Run, pattern *regexp.Regexp) []tfevents.Run {
	return slices.DeleteFunc(runs, func(r tfevents.Run) bool { return !pattern.MatchString(r.Name) })
}
