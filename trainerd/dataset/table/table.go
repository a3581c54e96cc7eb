package table

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Format is how a table is stored.
type Format string

const (
	// CSV is text with separated columns.
	CSV Format = "csv"
	// JSON is JSON lines, or an array of objects.
	JSON Format = "json"
	// Parquet is a file of Apache Parquet.
	Parquet Format = "parquet"
)

// Options says how to read a table. Sniff detects what is left open; without
// it the zero value is comma-separated UTF-8 without a header.
type Options struct {
	// Sniff detects the values of the other fields that are zero.
	Sniff bool
	// Format of the file; "" means CSV.
	Format Format
	// Narrow says that the table may have a single column. CSV in which Sniff finds
	// no separators then has one.
	Narrow bool
	// FindHeader says, instead of Header, how many rows of CSV hold the names of the
	// columns: it is given those in the first row, and Header.
	FindHeader func(names []string, header bool) int
	// Likely is how numbers are written where Sniff finds nothing that shows it, as in
	// 1.234, which may be two numbers.
	Likely Notation
	Dialect
}

// Dialect says how the text of a CSV file is written.
type Dialect struct {
	// Separator of the columns; 0 means ','. A blank matches any run of blanks
	// and tabs.
	Separator rune
	// Quote encloses fields; 0 means '"'.
	Quote rune
	// Comment begins a line that is left out; 0 for none.
	Comment rune
	// Skip is the number of lines before the table.
	Skip int
	// Header says that the first row has the names of the columns.
	Header bool
	// HeaderRows is how many rows the header has; 0 means 1. Each name is then made
	// of the words above each other.
	HeaderRows int
	// Encoding is "" for UTF-8, or UTF-16 if the file begins like that, or
	// Latin1.
	Encoding string
	// Decimal is the decimal mark of numbers, 0 for '.'.
	Decimal rune
	// Thousands is the mark between groups of three digits, 0 for none.
	Thousands rune
}

// Notation says how numbers are written, as in [Dialect].
type Notation struct{ Decimal, Thousands rune }

// Latin1 is the encoding Windows-1252, which has Latin-1 in it.
const Latin1 = "latin1"

// Row is one row of a table. It is overwritten by the next call of Next.
type Row struct {
	Fields []string
	Number int // of the row, from 1
	file   string
	line   int
	lines  []int // of the fields, nil if all are on line
}

// File returns the file that has the row, of a table in several; "" of any other.
func (r *Row) File() string { return r.file }

// Line returns the line of the file on which a field begins, 0 for a format
// without lines.
func (r *Row) Line(field int) int {
	if field < len(r.lines) {
		return r.lines[field]
	}
	return r.line
}

// FillUp adds empty fields to a row that is shorter than the table is wide, and
// reports whether it did.
func (r *Row) FillUp(width int) bool {
	n := len(r.Fields)
	for len(r.Fields) < width {
		r.Fields = append(r.Fields, "")
	}
	return n < width
}

// Table is an open table.
type Table struct {
	// Columns has the names of the columns; without a header their numbers.
	Columns []string
	// Line is that of the header, or else of the first row; 0 for a format without
	// lines.
	Line int
	// Options says how the table is read, including what was detected.
	Options Options

	next  func() (*Row, error)
	close []func() error
}

// Next returns the next row, and [io.EOF] after the last. A fault of the file is
// an [*Error]. Unless [Error.Row] is set, there is no next row after it.
func (t *Table) Next() (*Row, error) {
	row, err := t.next()
	if err == nil {
		row.compose()
	}
	return row, err
}

// Close closes the file.
func (t *Table) Close() error {
	var errs []error
	for _, f := range t.close {
		errs = append(errs, f())
	}
	t.close = nil
	return errors.Join(errs...)
}

// Error is a fault of a file.
type Error struct {
	File   string // of several; "" for the only one
	Line   int    // 0 if no single line is concerned
	Record int    // of a format without lines, from 1; 0 if no single record is concerned
	Row    bool   // only the row is faulty; reading may continue with the next
	Reason string // what is wrong
	Hint   string // what to do
	Err    error  // cause, may be nil
}

func (e *Error) Error() string {
	text := e.Reason
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	if e.File != "" {
		text = e.File + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// Open opens the table in a file. If the file cannot be opened, the error is
// that of package os.
func Open(name string, o Options) (*Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	t, err := openFile(f, o)
	if err != nil {
		f.Close()
		return nil, err
	}
	t.close = append(t.close, f.Close)
	return t, nil
}

func openFile(f *os.File, o Options) (*Table, error) {
	if o.Sniff && o.Format == "" {
		format, err := FormatOf(f)
		if err != nil {
			return nil, err
		}
		o.Format = format
	}
	if o.Format == Parquet {
		o.Sniff = false
		return newParquet(f, o)
	}
	return New(f, o)
}

// FormatOf detects the format of a file from its first bytes, and seeks back
// to the beginning.
func FormatOf(f io.ReadSeeker) (Format, error) {
	var magic [4]byte
	n, err := io.ReadFull(f, magic[:])
	if _, seekErr := f.Seek(0, io.SeekStart); seekErr != nil {
		return "", &Error{Reason: "cannot be read", Err: seekErr}
	}
	if n == 4 && string(magic[:]) == parquetMagic {
		return Parquet, nil
	}
	if err != nil && n == 0 && err != io.EOF {
		return "", &Error{Reason: "cannot be read", Err: err}
	}
	head, _, err := readHead(f)
	if _, seekErr := f.Seek(0, io.SeekStart); seekErr != nil {
		return "", &Error{Reason: "cannot be read", Err: seekErr}
	}
	if err != nil {
		return "", err
	}
	if beginsJSON(head) {
		return JSON, nil
	}
	return CSV, nil
}

// New reads a table from r, CSV or JSON. Parquet needs a file, for [Open].
func New(r io.Reader, o Options) (*Table, error) {
	if o.Sniff {
		head, rest, err := readHead(r)
		if err != nil {
			return nil, err
		}
		if o.Format == "" && beginsJSON(head) {
			o.Format = JSON
		}
		if o.Format != JSON {
			if o.Dialect, err = sniff(head, o.Dialect, o.Likely); err != nil && !o.Narrow {
				return nil, err
			}
		}
		r, o.Sniff = rest, false
	}
	switch o.Format {
	case JSON:
		return newJSON(r, o)
	case Parquet:
		return nil, &Error{Reason: "Parquet can be read from a file only", Hint: "give the name of the file"}
	}
	o.Format = CSV
	return newCSV(r, o)
}

// joinHeader returns the column names of a header with several rows, joining the
// words above each other with dots: sensor above t is sensor.t.
func joinHeader(rows ...[]string) []string {
	joined := make([]string, 0, len(rows[0]))
	for c := range rows[0] {
		var words []string
		for _, row := range rows {
			if c < len(row) && strings.TrimSpace(row[c]) != "" {
				words = append(words, strings.TrimSpace(row[c]))
			}
		}
		joined = append(joined, strings.Join(words, "."))
	}
	return names(joined)
}

// names returns the names of columns, each another one.
func names(given []string) []string {
	seen := make(map[string]bool, len(given))
	all := make([]string, len(given))
	for i, name := range given {
		if name = Name(name); name == "" {
			name = fmt.Sprintf("Unnamed: %d", i)
		}
		unique := name
		for n := 1; seen[unique]; n++ {
			unique = name + "." + strconv.Itoa(n)
		}
		seen[unique] = true
		all[i] = unique
	}
	return all
}
