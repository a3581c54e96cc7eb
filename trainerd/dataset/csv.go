package dataset

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/klauspost/compress/gzip"
)

// maxRows keeps row numbers within the uint32 of an epoch's order.
const maxRows = math.MaxInt32

// table is a whole file as numbers, in the file's order.
type table struct {
	name     string
	header   []string // names of the file's columns, nil without a header
	label    int      // the file's column that holds the label
	width    int      // features of a row
	features []float32
	labels   []int64
	classes  int
}

// column returns the file's column of a feature.
func (t *table) column(feature int) int {
	if feature < t.label {
		return feature
	}
	return feature + 1
}

// nameOf returns the name of a file's column, "" without a header.
func (t *table) nameOf(column int) string {
	if column >= len(t.header) {
		return ""
	}
	return t.header[column]
}

// columns returns the names of the features, nil without a header.
func (t *table) columns() []string {
	if t.header == nil {
		return nil
	}
	return slices.Concat(t.header[:t.label], t.header[t.label+1:])
}

// schema returns what the columns hold.
func (t *table) schema(o Options) *Schema {
	kind := KindNumber
	if o.IDs {
		kind = KindID
	}
	s := &Schema{Format: FormatCSV, Columns: t.width + 1, Classes: t.classes, Features: make([]Feature, t.width)}
	for i := range s.Features {
		s.Features[i] = Feature{Name: t.nameOf(t.column(i)), Kind: kind, Column: t.column(i)}
	}
	s.Label = Feature{Name: t.nameOf(t.label), Kind: KindNumber, Column: t.label}
	if !o.Numbers {
		s.Label.Kind = KindCategory
	}
	return s
}

// tableReader turns records into a table and collects what is wrong.
type tableReader struct {
	opts    Options
	csv     *csv.Reader
	table   *table
	fields  int // columns of a row, label included; 0 before the first row
	line    int // of the record read last, 0 before the first
	records int // data rows seen, intact or not
	errs    *Errors
}

// readCSV reads CSV as a source.
func readCSV(r io.Reader, name string, o Options) (*source, error) {
	t, err := readTable(r, name, o)
	if err != nil {
		return nil, err
	}
	return &source{
		rows: &floatRows{values: t.features, width: t.width, labels: t.labels},
		name: name, width: t.width, classes: t.classes, columns: t.columns(), schema: t.schema(o), close: noClose,
		place: func(_, feature int) *Error {
			return &Error{File: name, Column: t.column(feature) + 1, Name: t.nameOf(t.column(feature))}
		},
	}, nil
}

// readTable reads all rows. It continues after a faulty row, so that one run
// shows more than one fault, and stops where the rest makes no sense.
func readTable(r io.Reader, name string, o Options) (*table, error) {
	t := &tableReader{opts: o, table: &table{name: name}, errs: &Errors{File: name}}
	plain, err := decompress(r)
	if err != nil {
		return nil, t.stop(&Error{Reason: "is compressed, but cannot be decompressed", Err: unwrapPath(err), Hint: "the file is damaged; get it again"})
	}
	t.csv = csv.NewReader(plain)
	if o.Comma != 0 {
		t.csv.Comma = o.Comma
	}
	t.csv.FieldsPerRecord = -1 // row checks the width itself, for a better message
	t.csv.ReuseRecord = true
	t.csv.TrimLeadingSpace = !unicode.IsSpace(t.csv.Comma) // else it would eat empty fields
	if err := t.readAll(); err != nil {
		return nil, err
	}
	if t.records == 0 && len(t.errs.Problems) == 0 {
		return nil, t.stop(&Error{Reason: "holds no rows", Hint: "training needs at least two"})
	}
	if err := t.errs.err(); err != nil {
		return nil, err
	}
	return t.table, t.finish()
}

// decompress undoes gzip when the first bytes say so, and drops a byte order mark.
func decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		b = bufio.NewReaderSize(z, 1<<16)
	}
	if mark, _ := b.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		b.Discard(3) // cannot fail: Peek has buffered these bytes
	}
	return b, nil
}

func (t *tableReader) readAll() error {
	for {
		record, err := t.csv.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return t.readError(err)
		}
		t.line, _ = t.csv.FieldPos(0)
		if t.fields == 0 {
			if err := t.begin(record); err != nil {
				return err
			}
			if t.opts.Header {
				continue
			}
		}
		if t.records == maxRows {
			return t.stop(&Error{Reason: fmt.Sprintf("holds more than %d rows", maxRows), Hint: "divide it"})
		}
		t.records++
		t.row(record)
		if size := 4*int64(len(t.table.features)) + 8*int64(len(t.table.labels)); size > t.opts.MemoryLimit {
			return t.stop(&Error{Line: t.line, Reason: fmt.Sprintf("the rows take more than data.memory_mb = %d", t.opts.MemoryLimit>>20),
				Hint: "raise it, or store the data as TFRecord and set data.shuffle_buffer"})
		}
	}
}

// stop adds a fault after which reading makes no sense.
func (t *tableReader) stop(e *Error) error {
	t.errs.add(e)
	return t.errs
}

// readError places an error that the CSV reader returned.
func (t *tableReader) readError(err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return t.stop(&Error{Line: p.Line, Reason: "is not CSV", Err: p.Err,
			Hint: "write a quote inside a quoted field twice, and close every quote"})
	}
	return t.stop(&Error{Line: t.line, Reason: "cannot be read to the end", Err: unwrapPath(err), Hint: "it may be cut short or damaged; get it again"})
}

// begin learns the columns from the first record.
func (t *tableReader) begin(record []string) error {
	t.fields = len(record)
	if t.opts.Header {
		t.table.header = make([]string, len(record))
		for i, name := range record {
			t.table.header[i] = strings.TrimSpace(name)
		}
	}
	label, e := t.findLabel()
	if e != nil {
		e.Line = t.line
		return t.stop(e)
	}
	if t.fields == 1 {
		return t.stop(&Error{Line: t.line, Reason: "has a single column", Hint: fmt.Sprintf("a row needs a label and at least one feature, separated by %q; check data.separator", t.csv.Comma)})
	}
	t.table.label = label
	t.table.width = t.fields - 1
	return nil
}

// findLabel returns the index of the label column, or why there is none.
func (t *tableReader) findLabel() (index int, e *Error) {
	const choose = "set data.label to one of them"
	want := t.opts.Label
	places := fmt.Sprintf("the %d columns are 0 to %d, or -%d to -1 from the end", t.fields, t.fields-1, t.fields)
	if want.Name == "" {
		index = want.Index
		if index < 0 {
			index += t.fields
		}
		if index < 0 || index >= t.fields {
			return 0, &Error{Reason: fmt.Sprintf("there is no column %d for the label; %s", want.Index, places), Hint: choose}
		}
		return index, nil
	}
	if !t.opts.Header {
		return 0, &Error{Reason: fmt.Sprintf("the label column %q is given by name, but the file is read without a header", want.Name),
			Hint: "set data.header = true, or data.label to an index: " + places}
	}
	index = slices.Index(t.table.header, want.Name)
	if index < 0 {
		return 0, &Error{Reason: fmt.Sprintf("there is no column %q for the label; the columns are %s", want.Name, quoteNames(t.table.header)), Hint: choose}
	}
	if slices.Contains(t.table.header[index+1:], want.Name) {
		return 0, &Error{Reason: fmt.Sprintf("two columns are called %q", want.Name), Hint: "set data.label to an index: " + places}
	}
	return index, nil
}

// quoteNames lists column names for a message, leaving out the middle of a
// long list.
func quoteNames(names []string) string {
	const head, tail = 20, 3
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	if len(quoted) > head+tail {
		left := len(quoted) - head - tail
		quoted = slices.Concat(quoted[:head], []string{fmt.Sprintf("... %d more ...", left)}, quoted[len(quoted)-tail:])
	}
	return strings.Join(quoted, ", ")
}

// row adds one record to the table. After the first fault of the file the
// records are only checked.
func (t *tableReader) row(record []string) {
	if len(record) != t.fields {
		t.errs.add(&Error{Line: t.line, Reason: fmt.Sprintf("the row has %d columns, but the first row has %d", len(record), t.fields),
			Hint: "make all rows equally long"})
		return
	}
	for i, field := range record {
		field = strings.TrimSpace(field)
		if i == t.table.label {
			t.addLabel(i, field)
			continue
		}
		v, reason, hint := t.opts.parseFeature(field)
		if reason != "" {
			t.fault(i, reason, t.orHeader(field, hint))
			continue
		}
		t.table.features = append(t.table.features, v)
	}
}

// fault adds what is wrong with a field of the current record.
func (t *tableReader) fault(column int, reason, hint string) {
	line, _ := t.csv.FieldPos(column)
	t.errs.add(&Error{Line: line, Column: column + 1, Name: t.table.nameOf(column), Reason: reason, Hint: hint})
}

// orHeader replaces the hint when text in the first row looks like a header.
func (t *tableReader) orHeader(field, hint string) string {
	_, err := strconv.ParseFloat(field, 64)
	if t.records == 1 && !t.opts.Header && field != "" && errors.Is(err, strconv.ErrSyntax) {
		return "if the first row holds column names, set data.header = true"
	}
	return hint
}

// maxID bounds ids: a float32 holds all integers up to it.
const maxID = 1 << 24

// parseFeature returns the number or id in a field, or what is wrong with it.
func (o Options) parseFeature(field string) (v float32, reason, hint string) {
	if !o.IDs {
		return parseFeature(field)
	}
	if field == "" {
		return -1, "", ""
	}
	id, err := strconv.ParseInt(field, 10, 64)
	if err != nil || id < -maxID || id >= maxID {
		return 0, fmt.Sprintf("%s is not an id", clip(field)), fmt.Sprintf("ids are integers from 0 to %d; leave the field empty for none", maxID-1)
	}
	return float32(id), "", ""
}

// parseFeature returns the number in a field, or what is wrong with it.
func parseFeature(field string) (v float32, reason, hint string) {
	if field == "" {
		return 0, "the field is empty", "fill in a number or remove the row"
	}
	f, err := strconv.ParseFloat(field, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Sprintf("%s is beyond the range of a float32", clip(field)), "scale the column before"
	case err != nil:
		return 0, fmt.Sprintf("%s is not a number", clip(field)), "features are numbers with a decimal point, such as -1.5e3"
	case math.IsNaN(f) || math.IsInf(f, 0):
		return 0, fmt.Sprintf("%s is not a finite number", clip(field)), "fill in a number or remove the row"
	}
	return float32(f), "", ""
}

// addLabel parses the label of a row.
func (t *tableReader) addLabel(column int, field string) {
	if t.opts.Numbers {
		v, reason, hint := parseFeature(field)
		if reason != "" {
			t.fault(column, "the label: "+reason, t.orHeader(field, hint))
			return
		}
		t.table.labels = append(t.table.labels, int64(math.Float32bits(v)))
		return
	}
	label, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		t.fault(column, fmt.Sprintf("the label %s is not an integer", clip(field)),
			t.orHeader(field, "labels are the classes' numbers, from 0 up; check that data.label is the right column"))
		return
	}
	if reason, hint := t.opts.checkClass(label); reason != "" {
		t.fault(column, reason, hint)
		return
	}
	t.table.labels = append(t.table.labels, label)
}

// clip quotes a field for a message, cut when it is very long.
func clip(field string) string {
	const longest = 40
	if len(field) > longest {
		return strconv.Quote(strings.ToValidUTF8(field[:longest], "")) + "..."
	}
	return strconv.Quote(field)
}

// finish checks what only the whole file shows.
func (t *tableReader) finish() error {
	classes, e := t.opts.countClasses(t.table.labels, "check that data.label is the right column")
	if e != nil {
		e.Column, e.Name = t.table.label+1, t.table.nameOf(t.table.label)
		return t.stop(e)
	}
	t.table.classes = classes
	return nil
}

// countClasses returns the number of classes. If the labels cannot be right,
// check says what the user should look at.
func (o Options) countClasses(labels []int64, check string) (int, *Error) {
	if o.Numbers {
		return 0, nil
	}
	if o.Classes > 0 {
		return o.Classes, nil
	}
	top := slices.Max(labels)
	switch {
	case top == 0:
		return 0, &Error{Reason: "every label is 0", Hint: "a classifier needs at least two classes; " + check}
	case top >= int64(max(len(labels), 2)):
		return 0, &Error{Reason: fmt.Sprintf("the greatest label is %d, but there are only %d rows", top, len(labels)),
			Hint: check + "; if it is, set model.classes"}
	}
	return int(top) + 1, nil
}

// checkClass says what is wrong with a class, "" when it is one.
func (o Options) checkClass(label int64) (reason, hint string) {
	switch {
	case label < 0:
		return fmt.Sprintf("the label %d is negative", label), "number the classes from 0 up"
	case o.Classes > 0 && label >= int64(o.Classes):
		return fmt.Sprintf("the label %d is out of range: model.classes = %d allows 0 to %d", label, o.Classes, o.Classes-1),
			"correct the label or model.classes"
	}
	return "", ""
}

// unwrapPath drops the file's name from an error; ours names it already.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
