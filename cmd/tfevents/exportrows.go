package main

import (
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/proto/tbpb"
	"github.com/trainerd/trainerd/tfevents/summary"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
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
				if s.shows(series.plugin) && s.tags.MatchString(series.tag) && !yield(v, series) {
					return
				}
			}
		}
	}
}

func (s *selection) shows(plugin string) bool { return s.plugin == plugin || s.plugin == allPlugins }

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
				if !yield(at, decode.ModernValue(value)) {
					return
				}
			}
		}
	}
}

// odd reports a value that is not what its plugin shows.
func (s *selection) odd(at pointRow) {
	s.report.damaged(fmt.Errorf("run %s, tag %q, step %d: the value is not one of plugin %s; see `tfevents check`", shown(at.Run), at.Tag, at.Step, s.plugin))
}

// exporter prints what a plugin shows.
type exporter struct {
	print func(s *selection, w io.Writer, format string) error // a row for each
	widen func(s *selection) iter.Seq[wideRow]                 // with the columns of all plugins
}

var exporters = map[string]exporter{
	summary.PluginScalars:    {print: printScalars, widen: exporterOf((*selection).scalars).widen},
	summary.PluginHistograms: exporterOf(rowsOf(bucketsOf)),
	summary.PluginText:       exporterOf(rowsOf(textsOf)),
	summary.PluginPRCurves:   exporterOf(rowsOf(curveOf)),
	summary.PluginMesh:       exporterOf(rowsOf(meshOf)),
	summary.PluginImages:     exporterOf(rowsOf(imagesOf)),
	summary.PluginAudio:      exporterOf(rowsOf(clipsOf)),
	summary.PluginHParams:    exporterOf((*selection).hparams),
}

// exporterFor returns the exporter of any plugin, those of other people included.
func exporterFor(plugin string) exporter {
	if form, ok := exporters[plugin]; ok {
		return form
	}
	return exporterOf(rowsOf(elementsOf))
}

func exporterOf[T any](rows func(*selection) iter.Seq[T]) exporter {
	return exporter{
		print: func(s *selection, w io.Writer, format string) error { return printRows(w, format, rows(s)) },
		widen: func(s *selection) iter.Seq[wideRow] { return widened(s.plugin, rows(s)) },
	}
}

// rowsOf returns what walks the rows of all selected values, up to the first file that
// cannot be written. f returns the rows of one value, and whether it is one of its plugin.
func rowsOf[T any](f func(s *selection, at pointRow, v *tfpb.Summary_Value) (rows []T, ok bool)) func(*selection) iter.Seq[T] {
	return func(s *selection) iter.Seq[T] {
		return func(yield func(T) bool) {
			for at, v := range s.values() {
				rows, ok := f(s, at, v)
				if s.err != nil {
					return
				}
				if !ok {
					s.odd(at)
				}
				for _, row := range rows {
					if !yield(row) {
						return
					}
				}
			}
		}
	}
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

func bucketsOf(_ *selection, at pointRow, v *tfpb.Summary_Value) (rows []bucketRow, ok bool) {
	numbers, dims, ok := numbersOf(v)
	if !ok || len(dims) != 2 || dims[1] != 3 {
		return nil, false
	}
	for x := range slices.Chunk(numbers, 3) {
		rows = append(rows, bucketRow{at, number(x[0]), number(x[1]), number(x[2])})
	}
	return rows, true
}

// numbersOf returns the numbers of a value that is a tensor of such, and its shape.
func numbersOf(v *tfpb.Summary_Value) (numbers []float64, dims []int64, ok bool) {
	numbers, ok = decode.Numbers(v.GetTensor())
	for _, d := range v.GetTensor().GetTensorShape().GetDim() {
		dims = append(dims, d.GetSize())
	}
	return numbers, dims, ok
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

func curveOf(_ *selection, at pointRow, v *tfpb.Summary_Value) (rows []curveRow, ok bool) {
	numbers, dims, ok := numbersOf(v)
	if !ok || len(dims) != 2 || dims[0] != curveRows {
		return nil, false
	}
	n := len(numbers) / curveRows
	for i := range n {
		x := func(row int) number { return number(numbers[row*n+i]) }
		threshold := number(float64(i) / float64(max(n-1, 1)))
		rows = append(rows, curveRow{at, threshold, x(0), x(1), x(2), x(3), x(4), x(5)})
	}
	return rows, true
}

// meshRow is a vertex, a face or a colour of a mesh.
type meshRow struct {
	pointRow
	Part  string `parquet:"part,dict" json:"part"` // vertex, face or color
	Mesh  int64  `parquet:"mesh" json:"mesh"`      // of several at one step
	Index int64  `parquet:"index" json:"index"`    // of the vertex, face or colour
	X     number `parquet:"x" json:"x"`            // of a face its first vertex, of a colour its red
	Y     number `parquet:"y" json:"y"`
	Z     number `parquet:"z" json:"z"`
}

// meshParts are the names of the parts, each a series of its own.
var meshParts = map[tbpb.MeshPluginData_ContentType]string{
	tbpb.MeshPluginData_VERTEX: "vertex", tbpb.MeshPluginData_FACE: "face", tbpb.MeshPluginData_COLOR: "color",
}

func meshOf(_ *selection, at pointRow, v *tfpb.Summary_Value) (rows []meshRow, ok bool) {
	data := new(tbpb.MeshPluginData)
	if err := proto.Unmarshal(v.GetMetadata().GetPluginData().GetContent(), data); err != nil {
		return nil, false
	}
	part := meshParts[data.GetContentType()]
	numbers, dims, ok := numbersOf(v)
	if !ok || part == "" || len(dims) != 3 || dims[2] != 3 {
		return nil, false
	}
	if data.GetName() != "" {
		at.Tag = data.GetName() // without the part, which its tag ends with
	}
	for i := range int64(len(numbers)) / 3 {
		x := numbers[3*i:]
		rows = append(rows, meshRow{at, part, i / dims[1], i % dims[1], number(x[0]), number(x[1]), number(x[2])})
	}
	return rows, true
}

// textRow is one text of a value, which may hold an array of them.
type textRow struct {
	pointRow
	Index int64  `parquet:"index" json:"index"` // in the array, row by row
	Text  string `parquet:"text" json:"text"`
}

func textsOf(_ *selection, at pointRow, v *tfpb.Summary_Value) (rows []textRow, ok bool) {
	if v.GetTensor().GetDtype() != tfpb.DataType_DT_STRING {
		return nil, false
	}
	for i, text := range v.GetTensor().GetStringVal() {
		rows = append(rows, textRow{at, int64(i), strings.ToValidUTF8(string(text), string(utf8.RuneError))})
	}
	return rows, true
}
