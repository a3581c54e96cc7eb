package dataset

import (
	"bufio"
	"bytes"
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
	width   int
	first   *table.Row // read to find out whether it is the header, nil if it was
}

// openTable opens CSV, JSON or Parquet. The dialect is found out; whether there
// is a header is decided by the names that the model knows.
func (e *Examples) openTable(format Format) error {
	t := &tableExamples{Examples: e, words: e.schema.Vocabularies()}
	o := table.Options{Sniff: true, Format: tableFormats[format]}
	var err error
	if e.opts.In != nil {
		t.table, err = openStream(e.opts.In, o)
	} else {
		t.table, err = openTwice(e.name, o)
	}
	if err != nil {
		return tableError(e.name, err)
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

// tableFormats has the formats that are tables; others mean that it is found out.
var tableFormats = map[Format]table.Format{FormatCSV: table.CSV, FormatJSON: table.JSON, FormatParquet: table.Parquet}

// literal is a dialect that was found out, with the header as a row of its own.
func literal(o table.Options) table.Options {
	if o.Format == table.CSV {
		o.Header = false
	}
	o.Sniff = false
	return o
}

// openTwice opens a file, once to find out its dialect. One that is too small to
// tell has commas.
func openTwice(name string, o table.Options) (*table.Table, error) {
	t, err := table.Open(name, o)
	var unclear *table.Error
	switch {
	case errors.As(err, &unclear):
		return table.Open(name, table.Options{Format: o.Format})
	case err != nil:
		return nil, err
	}
	t.Close()
	sniffed := t.Options
	if t, err = table.Open(name, literal(sniffed)); err == nil {
		t.Options.Header = sniffed.Header
	}
	return t, err
}

// streamHead is how much of a stream is looked at to find out its dialect.
const streamHead = 1 << 20

func openStream(in io.Reader, o table.Options) (*table.Table, error) {
	r := bufio.NewReaderSize(in, streamHead)
	head, err := r.Peek(streamHead)
	if err != nil && err != io.EOF {
		return nil, &table.Error{Reason: "cannot be read", Err: err}
	}
	if len(head) == streamHead { // the last row may be cut
		head = head[:max(1, bytes.LastIndexByte(head, '\n')+1)]
	}
	t, err := table.New(bytes.NewReader(head), o)
	if err != nil {
		return table.New(r, table.Options{Format: o.Format})
	}
	sniffed := t.Options
	t.Close()
	if t, err = table.New(r, literal(sniffed)); err == nil {
		t.Options.Header = sniffed.Header
	}
	return t, err
}

// begin finds the columns: by name, or by their places in the training file.
func (t *tableExamples) begin() error {
	names := t.table.Columns
	named := t.table.Options.Format != table.CSV
	if !named {
		row, err := t.table.Next()
		if err == io.EOF {
			t.first, t.label = nil, -1
			return nil // Each says that there are no rows
		}
		if err != nil {
			return tableError(t.name, err)
		}
		first := &table.Row{Fields: slices.Clone(row.Fields), Number: row.Number}
		names = trimmed(first.Fields)
		if t.isFirstHeader(names) {
			if row, err = t.table.Next(); err == nil {
				names = table.JoinHeader(names, row.Fields)
			}
			t.names, t.width = names, len(names)
			return t.byName(names)
		}
		if named = t.isHeader(names); !named {
			t.first, t.width = row, len(first.Fields)
			return t.byPlace(len(first.Fields), first)
		}
		if !t.schema.HasNames() {
			t.width = len(names)
			return t.byPlace(len(names), nil)
		}
	}
	t.names, t.width = names, len(names)
	return t.byName(names)
}

// isFirstHeader reports whether a row is the first of two with the names of the
// columns, as table.JoinHeader makes them.
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

func trimmed(fields []string) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = strings.TrimSpace(f)
	}
	return all
}

// isHeader reports whether a row has the names of the columns.
func (t *tableExamples) isHeader(fields []string) bool {
	if !t.schema.HasNames() { // numbers are values then, whatever else they could be
		return t.table.Options.Header && !slices.ContainsFunc(fields, table.IsNumber)
	}
	known := 0
	for _, f := range t.schema.Features {
		if slices.Contains(fields, f.Name) {
			known++
		}
	}
	return known > 0 && 2*known >= len(t.schema.Features) || t.table.Options.Header
}

// byName finds the columns by their names. Others are left out.
func (t *tableExamples) byName(names []string) error {
	if !t.schema.HasNames() {
		return t.byPlace(len(names), nil)
	}
	var missing []string
	for _, f := range t.schema.Features {
		at := slices.Index(names, f.Name)
		if at < 0 {
			missing = append(missing, f.Name)
		}
		t.columns = append(t.columns, at)
	}
	if len(missing) > 0 {
		return &Error{Line: t.table.Line, Reason: fmt.Sprintf("the columns %s are missing, which the model was trained with; there are %s", quoteNames(missing), quoteNames(names)),
			Hint: "add them; a field of a column that is not known may be empty"}
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
func (t *tableExamples) byPlace(n int, first *table.Row) error {
	s := t.schema
	t.label = -1
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
		e := &Error{Reason: fmt.Sprintf("has rows of %d columns, but the model takes %d features", n, len(s.Features)), Hint: t.placeHint()}
		if first != nil {
			e.Line = t.table.Line
		}
		return e
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
	row := t.first
	t.first = nil
	if row == nil {
		var err error
		if row, err = t.table.Next(); err == io.EOF {
			return io.EOF
		} else if err != nil {
			return t.rowError(err)
		}
	}
	if !t.opts.NoMissing {
		row.FillUp(t.width)
	}
	if len(row.Fields) != t.width {
		return &Error{Line: row.Line(0), Reason: fmt.Sprintf("the row has %d columns, but the first row has %d", len(row.Fields), t.width), Hint: "make all rows equally long"}
	}
	for i, c := range t.columns {
		v, reason, hint := t.schema.Parse(t.words, i, row.Fields[c])
		if reason == "" && t.opts.NoMissing && math.IsNaN(float64(v)) {
			reason, hint = "the field is empty", "fill it in: the model was trained without missing numbers, and without data.normalize, which would fill in the mean"
		}
		if reason != "" {
			return t.fault(row, c, reason, hint)
		}
		one.X = append(one.X, v)
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
	e := &Error{Line: row.Line(column), Column: column + 1, Reason: reason, Hint: hint}
	if column < len(t.names) {
		e.Name = t.names[column]
	}
	if e.Line == 0 {
		e.Record = row.Number
	}
	return e
}
