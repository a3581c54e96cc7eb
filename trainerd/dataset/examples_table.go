package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// tableExamples reads rows of a table for a model that is trained.
type tableExamples struct {
	*Examples
	table   *table.Table
	words   Vocabularies
	columns []int // of the table, for each feature
	label   int   // column, -1 for none
	names   []string
	kept    []int // columns
}

// openTable opens CSV, JSON or Parquet. The dialect is found out; whether there
// is a header is decided by the names that the model knows.
func (e *Examples) openTable(format Format) error {
	t := &tableExamples{Examples: e, words: e.schema.Vocabularies(), label: -1}
	o := table.Options{Sniff: true, Format: tableFormats[format], Narrow: true, FindHeader: t.headerRows,
		Likely: table.Notation{Decimal: e.schema.Decimal, Thousands: e.schema.Thousands}}
	if err := t.open(o); err != nil {
		return err
	}
	e.close = append(e.close, t.table.Close)
	if err := t.begin(); err != nil {
		var located *Error
		if errors.As(err, &located) && located.File == "" {
			located.File = e.name
		}
		return err
	}
	e.next, e.HasLabels = t.read, t.label >= 0
	return nil
}

// open opens the stream, or the files.
func (t *tableExamples) open(o table.Options) (err error) {
	if t.opts.In == nil {
		t.table, err = openFiles(t.name, o)
		return err
	}
	if t.table, err = table.New(t.opts.In, o); err != nil {
		return tableError(t.name, err)
	}
	return nil
}

// tableFormats has the formats that are tables; others mean that it is found out.
var tableFormats = map[Format]table.Format{FormatCSV: table.CSV, FormatJSON: table.JSON, FormatParquet: table.Parquet}

// headerRows returns how many rows of CSV have the names of the columns, of the
// names in the first row and whether it looks like a header.
func (t *tableExamples) headerRows(names []string, looks bool) int {
	switch {
	case t.isFirstHeader(names):
		return 2
	case t.isHeader(names, looks):
		return 1
	}
	return 0
}

// begin finds the columns: by name, or by their places in the training file.
func (t *tableExamples) begin() error {
	names := t.table.Columns
	if len(names) == 0 {
		return nil // Each says that there are no rows
	}
	if err := t.keep(names); err != nil {
		return err
	}
	if t.table.Options.Format == table.CSV && !t.table.Options.Header {
		return t.byPlace(len(names))
	}
	if t.schema.HasNames() {
		t.names = names
		return t.byName(names)
	}
	return t.byPlace(len(names))
}

// keep finds the columns whose fields are kept.
func (t *tableExamples) keep(names []string) error {
	for _, text := range t.opts.Keep {
		column, ok := columnCalled(text, names)
		if !ok {
			return &Error{Line: t.table.Line, Reason: fmt.Sprintf("there is no column %s; there are %s", clip(text), quoteNames(names))}
		}
		t.kept, t.Kept = append(t.kept, column), append(t.Kept, names[column])
	}
	return nil
}

// isFirstHeader reports whether a row is the first of two with the names of the
// columns, as package table makes them.
func (t *tableExamples) isFirstHeader(fields []string) bool {
	if !t.schema.HasNames() {
		return false
	}
	joined := false
	for _, f := range t.schema.Features {
		above, _, ok := strings.Cut(f.Name, ".")
		if slices.Contains(fields, f.Name) {
			return false
		}
		joined = joined || ok && slices.Contains(fields, above)
	}
	return joined
}

// isHeader reports whether a row has the names of the columns.
func (t *tableExamples) isHeader(fields []string, looks bool) bool {
	if !t.schema.HasNames() { // numbers are values then, whatever else they could be
		return looks && !slices.ContainsFunc(fields, table.IsNumber)
	}
	known := 0
	for _, f := range t.schema.Features {
		if slices.Contains(fields, f.Name) {
			known++
		}
	}
	return known > 0 && 2*known >= len(t.schema.Features) || looks
}

// byName finds the columns by their names. Others are left out.
func (t *tableExamples) byName(names []string) error {
	var missing []string
	for _, f := range t.schema.Features {
		at := slices.Index(names, f.Name)
		if at < 0 {
			missing = append(missing, f.Name)
		}
		t.columns = append(t.columns, at)
	}
	if len(missing) > 0 {
		what, add := "the columns %s are missing", "add them"
		if len(missing) == 1 {
			what, add = "the column %s is missing", "add it"
		}
		return &Error{Line: t.table.Line, Reason: fmt.Sprintf(what+", which the model was trained with; there are %s", quoteNames(missing), quoteNames(names)),
			Hint: add + "; a field of a column that is not known may be empty"}
	}
	if t.label = slices.Index(names, t.schema.Label.Name); t.schema.Label.Name == "" {
		t.label = -1
	}
	return t.needLabel()
}

func (t *tableExamples) needLabel() error {
	if t.label < 0 && t.opts.NeedLabel {
		return &Error{Reason: "has no labels", Hint: fmt.Sprintf("add the column %q, with which the predictions are compared", t.schema.Label.Name)}
	}
	return nil
}

// byPlace finds the columns by their places: those of the training file, with or
// without its label, or the features alone.
func (t *tableExamples) byPlace(n int) error {
	s := t.schema
	switch {
	case s.Columns > 0 && n == s.Columns:
		t.label = s.Label.Column
		for _, f := range s.Features {
			t.columns = append(t.columns, f.Column)
		}
	case s.Columns > 0 && n == s.Columns-1:
		for _, f := range s.Features {
			c := f.Column
			if c > s.Label.Column {
				c--
			}
			t.columns = append(t.columns, c)
		}
	case n == len(s.Features):
		for i := range s.Features {
			t.columns = append(t.columns, i)
		}
	default:
		return &Error{Line: t.table.Line, Reason: fmt.Sprintf("has rows of %d columns, but the model takes %d features", n, len(s.Features)), Hint: t.placeHint()}
	}
	return t.needLabel()
}

func (t *tableExamples) placeHint() string {
	switch {
	case t.schema.HasNames():
		return "give a header with the columns' names"
	case t.schema.Columns > 0:
		return fmt.Sprintf("give the %d columns of the training file, with or without the label", t.schema.Columns)
	}
	return "give a column for each feature, without a header"
}

// read reads one row.
func (t *tableExamples) read(one *Example) error {
	row, err := t.table.Next()
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return t.rowError(err)
	}
	width := len(t.table.Columns)
	if !t.opts.NoMissing {
		row.FillUp(width)
	}
	if len(row.Fields) != width {
		return &Error{File: row.File(), Line: row.Line(0), Reason: fmt.Sprintf("the row has %d columns, but the first row has %d", len(row.Fields), width), Hint: "make all rows equally long"}
	}
	for i, c := range t.columns {
		if f := &t.schema.Features[i]; f.Kind == KindText {
			one.X = f.appendText(one.X, t.words[i], row.Fields[c])
			continue
		}
		v, fault := t.value(row, i, c)
		if fault != nil {
			return fault
		}
		one.X = append(one.X, v)
	}
	for _, c := range t.kept {
		one.Kept = append(one.Kept, strings.Clone(row.Fields[c]))
	}
	if t.label < 0 {
		return nil
	}
	label, reason := t.schema.ParseLabel(row.Fields[t.label])
	if reason == "" {
		one.Label = label
	} else if t.opts.NeedLabel && !t.schema.lacksLabel(row.Fields[t.label]) {
		return t.fault(row, t.label, reason, "correct the label, or remove the row")
	}
	return nil
}

// value returns the raw value of feature i, which is in column c.
func (t *tableExamples) value(row *table.Row, i, c int) (float32, *Error) {
	v, reason, hint := t.schema.Parse(t.words, i, row.Fields[c])
	switch {
	case reason == "" && t.opts.NoMissing && v != v:
		return 0, t.fault(row, c, "the field is empty", "fill it in: the model was trained without missing numbers, and without normalize, which would fill in the mean")
	case reason == "":
		return v, nil
	case t.opts.NoMissing || t.schema.Features[i].Kind == KindID:
		return 0, t.fault(row, c, reason, hint)
	case t.opts.Coerce:
		if t.Coerced++; t.FirstCoerced == nil {
			t.FirstCoerced = t.fault(row, c, reason, "")
			t.FirstCoerced.File = cmp.Or(row.File(), t.name)
		}
		return float32(math.NaN()), nil
	case t.opts.CoerceOption != "":
		hint += "; " + t.opts.CoerceOption + " takes it for missing"
	}
	return 0, t.fault(row, c, reason, hint)
}

// rowError returns the fault of a row, or what ends the reading.
func (t *tableExamples) rowError(err error) error {
	var e *table.Error
	if errors.As(err, &e) && e.Row {
		return placed(t.name, e)
	}
	return tableError(t.name, err)
}

// fault places what is wrong with a field.
func (t *tableExamples) fault(row *table.Row, column int, reason, hint string) *Error {
	e := &Error{File: row.File(), Line: row.Line(column), Column: column + 1, Reason: reason, Hint: hint}
	if column < len(t.names) {
		e.Name = t.names[column]
	}
	if e.Line == 0 {
		e.Record = row.Number
	}
	return e
}
