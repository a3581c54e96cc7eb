package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/trainerd/trainerd/internal/jsonfloat"
)

// pointRow is what the rows of all plugins begin with. The tags of the fields name
// the columns in each format.
type pointRow struct {
	Run      string `parquet:"run,dict" json:"run"`
	Tag      string `parquet:"tag,dict" json:"tag"`
	Step     int64  `parquet:"step" json:"step"`
	WallTime number `parquet:"wall_time" json:"wall_time"` // seconds since 1970
}

// number is a float64 whatever its value. JSON has no NaN and no infinity: it is then
// a string.
type number float64

func (n number) MarshalJSON() ([]byte, error) { return jsonfloat.Marshal(float64(n)) }

// formatNumber writes what is not a number as TensorBoard does.
func formatNumber(x float64) string { return string(appendNumber(nil, x)) }

func appendNumber(b []byte, x float64) []byte {
	switch {
	case math.IsNaN(x):
		return append(b, "NaN"...)
	case math.IsInf(x, 1):
		return append(b, "Infinity"...)
	case math.IsInf(x, -1):
		return append(b, "-Infinity"...)
	}
	// As JSON has it: times in plain digits, however long.
	format := byte('f')
	if abs := math.Abs(x); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, x, format, -1, 64)
}

// printRows prints rows of one type, whose fields have the tags of [pointRow]: as
// CSV, as a list of JSON objects, or as a Parquet file.
func printRows[T any](w io.Writer, format string, rows iter.Seq[T]) error {
	switch format {
	case "json":
		return rowsAsJSON(w, rows)
	case "parquet":
		return rowsAsParquet(w, rows)
	}
	return rowsAsCSV(w, rows)
}

func rowsAsCSV[T any](w io.Writer, rows iter.Seq[T]) error {
	out := csv.NewWriter(w)
	columns := columnsOf(reflect.TypeFor[T]())
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = columnName(c)
	}
	if err := out.Write(names); err != nil {
		return err
	}
	cells := make([]string, len(columns))
	for row := range rows {
		v := reflect.ValueOf(row)
		for i, c := range columns {
			cells[i] = cell(v.FieldByIndex(c.Index))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// distinct returns names of columns, no two of them equal, with which readers of tables
// could not tell one from the other: the later ones get a number, as in `step (2)`.
func distinct(names []string) []string {
	given := make(map[string]bool, len(names))
	for _, name := range names {
		given[name] = true
	}
	used := make(map[string]bool, len(names))
	for i, name := range names {
		for n := 2; used[names[i]]; n++ {
			if next := fmt.Sprintf("%s (%d)", name, n); !given[next] {
				names[i] = next
			}
		}
		used[names[i]] = true
	}
	return names
}

// columnsOf returns the fields of a row, those of its pointRow included.
func columnsOf(t reflect.Type) (columns []reflect.StructField) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			columns = append(columns, f)
		}
	}
	return columns
}

// cell returns a field as CSV has it; nothing for a nil pointer.
func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Float64:
		return formatNumber(v.Float())
	}
	return v.String()
}

// rowsAsJSON prints what printJSON does of a list of all rows.
func rowsAsJSON[T any](w io.Writer, rows iter.Seq[T]) error {
	var one bytes.Buffer
	e := json.NewEncoder(&one)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", "  ")
	between, end := "[\n  ", "[]\n"
	for row := range rows {
		one.Reset()
		if err := e.Encode(row); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", between, bytes.TrimSuffix(one.Bytes(), []byte("\n"))); err != nil {
			return err
		}
		between, end = ",\n  ", "\n]\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

// parquetBatch is how many rows are handed over at once.
const parquetBatch = 1024

func rowsAsParquet[T any](w io.Writer, rows iter.Seq[T]) error {
	out := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("tfevents", "", ""))
	batch := make([]T, 0, parquetBatch)
	for row := range rows {
		batch = append(batch, row)
		if len(batch) < parquetBatch {
			continue
		}
		if _, err := out.Write(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if _, err := out.Write(batch); err != nil {
		return err
	}
	return out.Close()
}
