package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// maxRows keeps row numbers within the uint32 of an epoch's order.
const maxRows = math.MaxInt32

// rowsReader turns the rows of a table into examples, and collects what is
// wrong.
type rowsReader struct {
	opts    Options
	name    string
	table   *table.Table
	columns *columnPlan
	errs    *Errors
	memory  memoryLimit

	records int // rows seen, intact or not
	skipped int // rows without a label
	values  []float32
	labels  []int64
	weights []float32     // none unless a column has them
	groups  *grouping     // nil unless a column has them
	words   []*vocabulary // of the features, nil for those that are not categories
	texts   []*texts      // of the features, nil for those that are not texts
	classes *vocabulary   // of the label, nil unless they are words
}

// openTable opens CSV, JSON or Parquet.
func openTable(ctx context.Context, name string, o Options) (*source, error) {
	t, err := openFiles(name, o.tableOptions())
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return readTable(ctx, t, name, o)
}

// openFiles opens the table in a file, or in those whose names match a pattern.
func openFiles(name string, o table.Options) (*table.Table, error) {
	files, err := matching(name)
	if err != nil {
		return nil, err
	}
	t, err := table.OpenAll(files, o)
	if err != nil {
		return nil, tableError(name, err)
	}
	return t, nil
}

// tableError places an error of package table.
func tableError(name string, err error) error {
	var e *table.Error
	if errors.As(err, &e) {
		return &Errors{File: name, Problems: []*Error{placed(name, e)}}
	}
	return openError(name, err)
}

func placed(name string, e *table.Error) *Error {
	if e.File != "" {
		name = e.File
	}
	return &Error{File: name, Line: e.Line, Record: e.Record, Reason: e.Reason, Err: e.Err, Hint: e.Hint}
}

// tableOptions says how the table is read.
func (o Options) tableOptions() table.Options {
	d := o.Dialect
	d.Separator, d.Header = o.Comma, o.Header
	formats := map[Format]table.Format{FormatJSON: table.JSON, FormatParquet: table.Parquet}
	return table.Options{Format: formats[o.Format], Dialect: d}
}

// hasNames reports whether the columns of the table have names.
func (o Options) hasNames() bool { return o.Header || o.Format != FormatCSV }

// readCSV reads CSV or JSON as a source.
func readCSV(ctx context.Context, r io.Reader, name string, o Options) (*source, error) {
	t, err := table.New(r, o.tableOptions())
	if err != nil {
		return nil, tableError(name, err)
	}
	return readTable(ctx, t, name, o)
}

// readTable reads all rows. It continues after a faulty row, so that one run
// shows more than one fault, and stops where the rest makes no sense.
func readTable(ctx context.Context, t *table.Table, name string, o Options) (*source, error) {
	r := &rowsReader{opts: o, name: name, table: t, errs: &Errors{File: name}, memory: o.memoryLimit()}
	if err := r.readAll(ctx); err != nil {
		return nil, err
	}
	if r.records == 0 && len(r.errs.Problems) == 0 {
		return nil, r.stop(&Error{Reason: "holds no rows", Hint: "training needs at least two"})
	}
	if len(r.labels) == 0 && len(r.errs.Problems) == 0 {
		return nil, r.stop(r.columns.locate(r.columns.label, &Error{Reason: "no row has a label", Hint: "check that data.label is the right column"}))
	}
	if err := r.errs.err(); err != nil {
		return nil, err
	}
	return r.source()
}

func (r *rowsReader) readAll(ctx context.Context) error {
	if len(r.table.Columns) > 0 {
		if err := r.begin(); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := r.table.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if e := (*table.Error)(nil); errors.As(err, &e) && e.Row {
				r.errs.add(placed(r.name, e))
				r.records++
				continue
			}
			var place *Errors
			if errors.As(tableError(r.name, err), &place) {
				return r.stop(place.Problems[0])
			}
			return r.stop(&Error{Reason: "cannot be read to the end", Err: unwrapPath(err)})
		}
		if r.records == maxRows {
			return r.stop(&Error{Reason: fmt.Sprintf("holds more than %d rows", maxRows), Hint: "divide it"})
		}
		r.records++
		r.row(row)
		if reason, remedy := r.memory.exceeded(r.size()); reason != "" {
			return r.stop(&Error{File: row.File(), Line: row.Line(0), Reason: "the rows " + reason,
				Hint: remedy + ", or store the data as TFRecord and set data.shuffle_buffer"})
		}
	}
}

// size returns how many bytes the rows take so far.
func (r *rowsReader) size() int64 {
	size := 4*int64(len(r.values)) + 8*int64(len(r.labels)) + 4*int64(len(r.weights))
	if r.groups != nil {
		size += r.groups.bytes()
	}
	for _, t := range r.texts {
		if t != nil {
			size += t.bytes()
		}
	}
	return size
}

// stop adds a fault after which reading makes no sense.
func (r *rowsReader) stop(e *Error) error {
	r.errs.add(e)
	return r.errs
}

// begin learns the columns.
func (r *rowsReader) begin() error {
	plan, e := newColumnPlan(r.table.Columns, r.opts)
	if e != nil {
		e.Line = r.table.Line
		return r.stop(e)
	}
	r.columns = plan
	if plan.group >= 0 {
		r.groups = newGrouping()
	}
	r.words, r.texts = make([]*vocabulary, len(plan.features)), make([]*texts, len(plan.features))
	for i := range plan.features {
		switch f := &plan.features[i]; f.Kind {
		case KindCategory:
			r.words[i] = newVocabulary(f.Vocabulary, maxWords)
		case KindText:
			r.texts[i] = newTexts(f)
		}
	}
	if plan.classes {
		r.classes = newVocabulary(plan.classNames, maxClasses)
	}
	return nil
}

// row adds one row. After the first fault of the file the rows are only
// checked.
func (r *rowsReader) row(row *table.Row) {
	if r.opts.Missing {
		row.FillUp(len(r.table.Columns))
	}
	if got, want := len(row.Fields), len(r.table.Columns); got != want {
		hint := "make all rows equally long"
		if got < want {
			hint += `, or set data.missing = "fill", which takes the fields at its end for missing`
		}
		r.errs.add(&Error{File: row.File(), Line: row.Line(0), Reason: fmt.Sprintf("the row has %d columns, but the first row has %d", got, want), Hint: hint})
		return
	}
	label, missing := r.label(row)
	if missing {
		r.skipped++
		return
	}
	r.weight(row)
	for i := range r.columns.features {
		f := &r.columns.features[i]
		if f.Kind == KindText {
			r.texts[i].add(row.Fields[f.Column])
			continue
		}
		field := strings.TrimSpace(row.Fields[f.Column])
		v, reason, hint := r.feature(i, f, field)
		if reason != "" {
			r.fault(row, f.Column, reason, r.orHeader(field, hint))
			continue
		}
		r.values = append(r.values, v)
	}
	if r.groups != nil {
		r.groups.add(strings.TrimSpace(row.Fields[r.columns.group]))
	}
	r.labels = append(r.labels, label)
}

// weight adds the weight of a row, if it has one.
func (r *rowsReader) weight(row *table.Row) {
	column := r.columns.weight
	if column < 0 {
		return
	}
	field := strings.TrimSpace(row.Fields[column])
	w, reason, hint := parseWeight(field)
	if reason != "" {
		r.fault(row, column, reason, r.orHeader(field, hint))
	}
	r.weights = append(r.weights, w)
}

// feature returns the raw value of a field, or what is wrong with it.
func (r *rowsReader) feature(i int, f *Feature, field string) (v float32, reason, hint string) {
	if f.Kind != KindID && f.isMissing(field) && (field == "" || r.opts.Missing) {
		switch {
		case !r.opts.Missing:
			return 0, "the field is empty", `fill in a value, remove the row, or set data.missing = "fill"`
		case f.Kind == KindCategory:
			return -1, "", ""
		}
		return float32(math.NaN()), "", ""
	}
	switch f.Kind {
	case KindCategory:
		return r.words[i].add(field)
	case KindDate:
		return f.parseDate(field)
	case KindNumber:
		return f.number(field)
	}
	return r.opts.parseFeature(field)
}

// label returns the label of a row: a class, or for numbers their bits. A row
// without one is to be left out.
func (r *rowsReader) label(row *table.Row) (label int64, missing bool) {
	column := r.columns.label
	field := strings.TrimSpace(row.Fields[column])
	if r.opts.Missing && r.columns.labels.isMissing(field) {
		return 0, true
	}
	label, reason, hint := r.parseLabel(field)
	if reason != "" {
		r.fault(row, column, reason, hint)
	}
	return label, false
}

func (r *rowsReader) parseLabel(field string) (label int64, reason, hint string) {
	if r.opts.Numbers {
		v, reason, hint := r.columns.labels.number(field)
		if reason != "" {
			return 0, "the label: " + reason, r.orHeader(field, hint)
		}
		return int64(math.Float32bits(v)), "", ""
	}
	if r.classes != nil {
		return r.classes.addLabel(field)
	}
	label, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		return 0, fmt.Sprintf("the label %s is not an integer", clip(field)), r.orHeader(field, r.labelHint())
	}
	reason, hint = r.opts.checkClass(label)
	return label, reason, hint
}

func (r *rowsReader) labelHint() string {
	return "labels are the classes' numbers, from 0 up; for words, add data.categories = [" + strconv.Quote(r.table.Columns[r.columns.label]) + "]"
}

// fault adds what is wrong with a field.
func (r *rowsReader) fault(row *table.Row, column int, reason, hint string) {
	e := r.columns.locate(column, &Error{File: row.File(), Line: row.Line(column), Reason: reason, Hint: hint})
	if e.Line == 0 {
		e.Record = row.Number
	}
	r.errs.add(e)
}

// orHeader replaces the hint when text in the first row looks like a header.
func (r *rowsReader) orHeader(field, hint string) string {
	_, err := strconv.ParseFloat(field, 64)
	if r.records == 1 && !r.opts.hasNames() && field != "" && errors.Is(err, strconv.ErrSyntax) {
		return "if the first row holds column names, set data.header = true"
	}
	return hint
}

// source checks what only the whole file shows, and returns the examples.
func (r *rowsReader) source() (*source, error) {
	p := r.columns
	if e := r.finishWords(); e != nil {
		return nil, r.stop(e)
	}
	classes, classNames := 0, []string(nil)
	if r.classes != nil {
		classNames = r.classes.sort()
		for i, label := range r.labels {
			r.labels[i] = int64(r.classes.order[label])
		}
	}
	classes, e := r.countClasses(classNames)
	if e != nil {
		return nil, r.stop(p.locate(p.label, e))
	}
	schema := p.schema(r.opts, classes, classNames)
	return &source{
		rows: r.rows(), name: r.name, width: schema.Width(), classes: classes, columns: p.names(), classNames: classNames,
		schema: schema, unlabelled: r.skipped, weights: r.weights, groups: r.groups, close: noClose,
		place: func(_, feature int) *Error { return p.locate(schema.featureAt(feature).Column, &Error{File: r.name}) },
	}, nil
}

func (r *rowsReader) countClasses(names []string) (int, *Error) {
	const check = "check that data.label is the right column"
	if names == nil {
		return r.opts.countClasses(r.labels, check)
	}
	switch n := len(names); {
	case n < 2:
		return 0, &Error{Reason: "every label is " + clip(names[0]), Hint: "a classifier needs at least two classes; " + check}
	case r.opts.Classes > 0 && r.opts.Classes < n:
		return 0, &Error{Reason: fmt.Sprintf("there are %d classes, more than model.classes = %d", n, r.opts.Classes), Hint: "correct model.classes, or leave it out"}
	}
	return max(len(names), r.opts.Classes), nil
}

const (
	// maxWords bounds the words of a category. More are not categories.
	maxWords = maxDistinct
	// maxClasses bounds the classes of a label.
	maxClasses = 1000
)

// statTable says why a file cannot be read, before it is.
func statTable(name string) error {
	files, err := matching(name)
	if err != nil {
		return err
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return openError(file, err)
		}
		if info.IsDir() {
			return &Error{File: file, Reason: "is a folder", Hint: `give the file with the table; for images set data.format = "images"`}
		}
	}
	return nil
}
