package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainerd/trainerd/internal/tfproto"
	tfpb "github.com/trainerd/trainerd/proto"
	"github.com/trainerd/trainerd/tfevents/summary/decode"
)

// allPlugins is the value of --plugin that means all of them.
const allPlugins = "all"

// wideRow is a row of any plugin. What a plugin has no column for is null, in JSON
// absent.
type wideRow struct {
	Plugin string `parquet:"plugin,dict" json:"plugin"`
	pointRow
	Index          *int64  `parquet:"index,optional" json:"index,omitempty"`
	Value          *number `parquet:"value,optional" json:"value,omitempty"`
	Text           *string `parquet:"text,optional" json:"text,omitempty"`
	File           *string `parquet:"file,optional" json:"file,omitempty"`
	Left           *number `parquet:"bucket_left,optional" json:"bucket_left,omitempty"`
	Right          *number `parquet:"bucket_right,optional" json:"bucket_right,omitempty"`
	Count          *number `parquet:"bucket_count,optional" json:"bucket_count,omitempty"`
	Threshold      *number `parquet:"threshold,optional" json:"threshold,omitempty"`
	TruePositives  *number `parquet:"true_positives,optional" json:"true_positives,omitempty"`
	FalsePositives *number `parquet:"false_positives,optional" json:"false_positives,omitempty"`
	TrueNegatives  *number `parquet:"true_negatives,optional" json:"true_negatives,omitempty"`
	FalseNegatives *number `parquet:"false_negatives,optional" json:"false_negatives,omitempty"`
	Precision      *number `parquet:"precision,optional" json:"precision,omitempty"`
	Recall         *number `parquet:"recall,optional" json:"recall,omitempty"`
	Part           *string `parquet:"part,optional,dict" json:"part,omitempty"`
	Mesh           *int64  `parquet:"mesh,optional" json:"mesh,omitempty"`
	X              *number `parquet:"x,optional" json:"x,omitempty"`
	Y              *number `parquet:"y,optional" json:"y,omitempty"`
	Z              *number `parquet:"z,optional" json:"z,omitempty"`
	Width          *int64  `parquet:"width,optional" json:"width,omitempty"`
	Height         *int64  `parquet:"height,optional" json:"height,omitempty"`
	Label          *string `parquet:"label,optional" json:"label,omitempty"`
	Trial          *string `parquet:"trial,optional,dict" json:"trial,omitempty"`
	Status         *string `parquet:"status,optional,dict" json:"status,omitempty"`
	StartTime      *number `parquet:"start_time,optional" json:"start_time,omitempty"`
	EndTime        *number `parquet:"end_time,optional" json:"end_time,omitempty"`
	HParam         *string `parquet:"hparam,optional,dict" json:"hparam,omitempty"`
	Number         *number `parquet:"number,optional" json:"number,omitempty"`
}

// everything walks the rows of all plugins: those that have a form of their own, and
// then the others, element by element.
func (s *selection) everything() iter.Seq[wideRow] {
	return func(yield func(wideRow) bool) {
		for _, plugin := range append(exportPlugins[:len(exportPlugins)-1:len(exportPlugins)-1], s.otherPlugins()...) {
			one := *s
			one.plugin = plugin
			for row := range exporterFor(plugin).widen(&one) {
				if !yield(row) {
					return
				}
			}
			if s.err = one.err; s.err != nil {
				return
			}
		}
	}
}

// otherPlugins returns the plugins of the selected series that have no form of their
// own: graphs, layouts, and those of other people.
func (s *selection) otherPlugins() (names []string) {
	for _, series := range s.series() {
		if !slices.Contains(exportPlugins, series.plugin) && !slices.Contains(names, series.plugin) {
			names = append(names, series.plugin)
		}
	}
	slices.Sort(names)
	return names
}

// elementRow is one element of a tensor: a number, a text, or bytes in a file. An integer
// that no float64 equals is also a text, with all its digits. A value that has neither is
// one row, with the Summary.Value in the file.
type elementRow struct {
	pointRow
	Index int64   `parquet:"index"` // row by row
	Value *number `parquet:"value"`
	Text  string  `parquet:"text"`
	File  string  `parquet:"file"`
}

func elementsOf(s *selection, at pointRow, v *tfpb.Summary_Value) (rows []elementRow, ok bool) {
	switch t := v.GetTensor(); {
	case v.GetValue() == nil:
		return nil, true
	case decode.IsNumeric(t.GetDtype()):
		numbers, ok := decode.Numbers(t)
		for i := range numbers {
			rows = append(rows, elementRow{pointRow: at, Index: int64(i), Value: (*number)(&numbers[i]), Text: roundedInteger(t, i)})
		}
		return rows, ok
	case t.GetDtype() != tfpb.DataType_DT_STRING: // complex numbers, or no tensor
		return []elementRow{{pointRow: at, File: s.write(at, 0, tfproto.Marshal(v))}}, true
	}
	for i, data := range v.GetTensor().GetStringVal() {
		row := elementRow{pointRow: at, Index: int64(i)}
		if isText(data) {
			row.Text = string(data)
		} else {
			row.File = s.write(at, i, data)
		}
		rows = append(rows, row)
	}
	return rows, true
}

// roundedInteger returns the digits of an integer of 64 bits that a float64 rounds, and
// nothing for any other element. [decode.Numbers] has read the tensor.
func roundedInteger(t *tfpb.TensorProto, i int) string {
	switch content := t.GetTensorContent(); t.GetDtype() {
	case tfpb.DataType_DT_INT64:
		return ifRounded(elementAt(content, t.GetInt64Val(), i))
	case tfpb.DataType_DT_UINT64:
		return ifRounded(elementAt(content, t.GetUint64Val(), i))
	}
	return ""
}

// ifRounded returns the digits of an integer that no float64 equals.
func ifRounded[T int64 | uint64](x T) string {
	near := float64(x)
	if math.Abs(near) < 1<<53 {
		return ""
	}
	digits := fmt.Sprint(x)
	if strconv.FormatFloat(near, 'f', 0, 64) == digits {
		return ""
	}
	return digits
}

// elementAt returns an element of a tensor_content, or of a list, whose last value is
// repeated; 0 if the values are in a list of another type.
func elementAt[T int64 | uint64](content []byte, listed []T, i int) T {
	switch {
	case len(content) > 0:
		return T(binary.LittleEndian.Uint64(content[8*i:]))
	case len(listed) > 0:
		return listed[min(i, len(listed)-1)]
	}
	return 0
}

// isText reports whether bytes are a text, and not a message in the wire format.
func isText(b []byte) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }
	return utf8.Valid(b) && !bytes.ContainsFunc(b, control)
}

// widened gives rows the columns of all plugins. Empty texts become null.
func widened[T any](plugin string, rows iter.Seq[T]) iter.Seq[wideRow] {
	places := widePlaces(reflect.TypeFor[T]())
	return func(yield func(wideRow) bool) {
		for row := range rows {
			wide := wideRow{Plugin: plugin}
			from, to := reflect.ValueOf(row), reflect.ValueOf(&wide).Elem()
			for _, p := range places {
				p.copy(to, from)
			}
			if wide.Tag == "" && wide.StartTime != nil {
				wide.WallTime = *wide.StartTime
			}
			if !yield(wide) {
				return
			}
		}
	}
}

// widePlace says where a column of one row type is in a wideRow.
type widePlace struct{ from, to []int }

func widePlaces(t reflect.Type) (places []widePlace) {
	byName := make(map[string][]int)
	for _, c := range columnsOf(reflect.TypeFor[wideRow]()) {
		byName[columnName(c)] = c.Index
	}
	for _, c := range columnsOf(t) {
		places = append(places, widePlace{c.Index, byName[columnName(c)]})
	}
	return places
}

func (p widePlace) copy(wide, row reflect.Value) {
	from, to := row.FieldByIndex(p.from), wide.FieldByIndex(p.to)
	switch {
	case from.Type() == to.Type():
		to.Set(from)
	case from.Kind() != reflect.String || from.Len() > 0:
		to.Set(reflect.New(from.Type()))
		to.Elem().Set(from)
	}
}

// columnName returns the name of a column in each format.
func columnName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("parquet"), ",")
	return name
}
