package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRecord bounds the text of a row: what is longer has no line ends, or a
// quote that nothing closes.
const maxRecord = 16 << 20

// scanner cuts text into records.
type scanner struct {
	r     *bufio.Reader
	d     Dialect
	sep   []byte
	quote byte

	lines  int    // read so far
	text   []byte // of the fields, one after the other
	ends   []int
	starts []int  // lines on which the fields begin
	line   []byte // rest of the line that is being cut
	whole  []byte // what holds a line that the reader's buffer does not
	first  int    // line of the record
}

func newScanner(r *bufio.Reader, d Dialect) *scanner {
	if d.Separator == 0 {
		d.Separator = ','
	}
	if d.Quote == 0 {
		d.Quote = '"'
	}
	return &scanner{r: r, d: d, sep: utf8.AppendRune(nil, d.Separator), quote: byte(d.Quote)}
}

// readLine makes the next line, without its end, the one that is cut.
func (s *scanner) readLine() error {
	line, err := s.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		s.whole = append(s.whole[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) && len(s.whole) <= maxRecord {
			line, err = s.r.ReadSlice('\n')
			s.whole = append(s.whole, line...)
		}
		line = s.whole
	}
	switch {
	case len(line) > maxRecord:
		return &Error{Line: s.lines + 1, Reason: "the line is longer than 16 MiB", Hint: "is it a table of text?"}
	case len(line) == 0 && err != nil:
		if err == io.EOF {
			return io.EOF
		}
		e := cutShort(err)
		e.Line = s.lines
		return e
	case err != nil && err != io.EOF:
		e := cutShort(err)
		e.Line = s.lines + 1
		return e
	}
	s.lines++
	line = bytes.TrimSuffix(line, []byte{'\n'})
	s.line = bytes.TrimSuffix(line, []byte{'\r'})
	return nil
}

// next cuts the next record; its fields are in text and ends.
func (s *scanner) next() error {
	s.text, s.ends, s.starts = s.text[:0], s.ends[:0], s.starts[:0]
	for {
		if err := s.readLine(); err != nil {
			return err
		}
		blank := bytes.TrimSpace(s.line)
		if s.lines <= s.d.Skip || len(blank) == 0 && (!isBlank(s.d.Separator) || s.d.Separator == ' ' || len(s.line) == 0) {
			continue
		}
		if s.isComment(blank) || isRuler(blank) {
			continue
		}
		s.first = s.lines
		if !utf8.Valid(s.line) {
			return &Error{Line: s.lines, Reason: "the line is not UTF-8", Hint: `save it as UTF-8; in a config, data.encoding = "latin1" reads Latin-1 and Windows-1252`}
		}
		return s.cut()
	}
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// cut divides the current line into fields.
func (s *scanner) cut() error {
	for {
		s.line = s.trimLeft(s.line)
		s.starts = append(s.starts, s.lines)
		var more bool
		if len(s.line) > 0 && s.line[0] == s.quote {
			var err error
			if more, err = s.cutQuoted(); err != nil {
				return err
			}
		} else {
			more = s.cutPlain()
		}
		s.ends = append(s.ends, len(s.text))
		if !more {
			return nil
		}
	}
}

// trimLeft drops the blanks before a field, unless they separate.
func (s *scanner) trimLeft(line []byte) []byte {
	if s.d.Separator == '\t' {
		return bytes.TrimLeft(line, " ")
	}
	return bytes.TrimLeft(line, " \t")
}

func (s *scanner) trimRight(line []byte) []byte {
	if s.d.Separator == '\t' {
		return bytes.TrimRight(line, " ")
	}
	return bytes.TrimRight(line, " \t")
}

// cutPlain takes a field without quotes, and reports whether another follows.
func (s *scanner) cutPlain() (more bool) {
	at := bytes.Index(s.line, s.sep)
	width := len(s.sep)
	if s.d.Separator == ' ' {
		at, width = bytes.IndexAny(s.line, " \t"), 1
	}
	if at < 0 {
		s.text = append(s.text, s.trimRight(s.line)...)
		s.line = nil
		return false
	}
	s.text = append(s.text, s.trimRight(s.line[:at])...)
	s.line = s.line[at+width:]
	return s.follows()
}

// follows reports whether there is a field after a separator. Blanks at the end
// of a line separate nothing.
func (s *scanner) follows() bool {
	return s.d.Separator != ' ' || len(bytes.TrimLeft(s.line, " \t")) > 0
}

// cutQuoted takes a field in quotes, and reports whether another follows.
func (s *scanner) cutQuoted() (more bool, err error) {
	opened := s.lines
	s.line = s.line[1:]
	for {
		at := bytes.IndexByte(s.line, s.quote)
		if at < 0 { // the field has a line end
			s.text = append(append(s.text, s.line...), '\n')
			if err := s.continued(opened); err != nil {
				return false, err
			}
			continue
		}
		s.text = append(s.text, s.line[:at]...)
		s.line = s.line[at+1:]
		if len(s.line) > 0 && s.line[0] == s.quote {
			s.text = append(s.text, s.quote)
			s.line = s.line[1:]
			continue
		}
		return s.afterQuote()
	}
}

// continued reads the next line of a field in quotes.
func (s *scanner) continued(opened int) error {
	unclosed := &Error{Line: opened, Reason: "is not CSV", Err: errors.New("a quote is opened and never closed"),
		Hint: "write a quote inside a quoted field twice, and close every quote"}
	if len(s.text) > maxRecord {
		return unclosed
	}
	err := s.readLine()
	if err == io.EOF {
		return unclosed
	}
	if err == nil && !utf8.Valid(s.line) {
		err = &Error{Line: s.lines, Reason: "the line is not UTF-8", Hint: `save it as UTF-8; in a config, data.encoding = "latin1" reads Latin-1 and Windows-1252`}
	}
	return err
}

// afterQuote takes the separator after a field in quotes.
func (s *scanner) afterQuote() (more bool, err error) {
	rest := s.trimLeft(s.line)
	switch {
	case len(rest) == 0:
		s.line = nil
		return false, nil
	case s.d.Separator == ' ' && len(rest) < len(s.line):
		s.line = rest
		return true, nil
	case bytes.HasPrefix(rest, s.sep):
		s.line = rest[len(s.sep):]
		return s.follows(), nil
	}
	s.line = nil
	return false, &Error{Line: s.lines, Row: true, Reason: "is not CSV", Err: csv.ErrQuote,
		Hint: "write a quote inside a quoted field twice, and close every quote"}
}

// fields returns the fields of the record that was cut last.
func (s *scanner) fields(into []string) []string {
	text := string(s.text)
	into, start := into[:0], 0
	for _, end := range s.ends {
		into = append(into, text[start:end])
		start = end
	}
	return into
}

// newCSV begins to read CSV.
func newCSV(r io.Reader, o Options) (*Table, error) {
	plain, err := decode(r, o.Encoding)
	if err != nil {
		return nil, err
	}
	c := &csvRows{scanner: newScanner(unixLines(plain), o.Dialect), number: asWritten}
	t := &Table{Options: o, next: c.next}
	first, err := c.next()
	if err == io.EOF {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.Line = c.first
	if o.FindHeader != nil {
		t.Options.HeaderRows = o.FindHeader(names(unmarked(first.Fields)), o.Header)
		t.Options.Header = t.Options.HeaderRows > 0
	}
	if t.Options.Header {
		t.Columns = c.readHeader(max(1, t.Options.HeaderRows))
		return t, nil
	}
	c.number = numbersOf(o.Dialect)
	for i, f := range first.Fields {
		first.Fields[i] = c.number(f)
		t.Columns = append(t.Columns, strconv.Itoa(i))
	}
	c.kept = true
	return t, nil
}

// readHeader returns the names of the columns: those in the row that was read, or
// in that and the ones below it.
func (c *csvRows) readHeader(rows int) []string {
	header := unmarked(c.row.Fields)
	for range rows - 1 {
		more, err := c.next()
		if err != nil {
			c.kept, c.keptErr = true, err
			return names(header) // of a file without rows
		}
		header = joinHeader(header, more.Fields)
	}
	c.row.Number, c.number = 0, numbersOf(c.d)
	second, err := c.next()
	c.kept, c.keptErr = true, err
	switch {
	case err != nil || len(second.Fields) != len(header)+1:
	case c.endsWithSeparators():
		header = append(header, "")
	default:
		header = append([]string{""}, header...)
	}
	return names(header)
}

// unmarked returns a copy of a header without the mark of comments before it.
func unmarked(header []string) []string {
	header = slices.Clone(header)
	if name := strings.TrimLeft(header[0], "# "); name != "" {
		header[0] = name
	}
	return header
}

// endsWithSeparators reports whether the row that was read, and those after it that
// are at hand, have a separator at their end that nothing follows. Rows that are
// longer than the header by that lack no name.
func (c *csvRows) endsWithSeparators() bool {
	const look = 4096
	if last := c.row.Fields[len(c.row.Fields)-1]; last != "" {
		return false
	}
	ahead, _ := c.r.Peek(look) // fewer are as good
	lines := bytes.Split(ahead, []byte{'\n'})
	for _, line := range lines[:len(lines)-1] {
		line = bytes.TrimRight(line, "\r ")
		if len(line) > 0 && !bytes.HasSuffix(line, c.sep) {
			return false
		}
	}
	return true
}

// csvRows are the rows of CSV.
type csvRows struct {
	*scanner
	row     Row
	number  func(string) string // makes numbers as Go writes them; asWritten for names
	kept    bool                // the row was read ahead
	keptErr error
}

func (c *csvRows) next() (*Row, error) {
	if c.kept {
		c.kept = false
		return &c.row, c.keptErr
	}
	err := c.scanner.next()
	if err == io.EOF {
		return nil, io.EOF
	}
	c.row.Number++
	c.row.line, c.row.lines = c.first, c.starts
	if err != nil {
		return nil, err
	}
	c.row.Fields = c.fields(c.row.Fields)
	for i, f := range c.row.Fields {
		c.row.Fields[i] = c.number(withoutFormula(f))
	}
	return &c.row, nil
}

func asWritten(name string) string { return name }

// withoutFormula returns what spreadsheets write as ="001", for a text that looks
// like a number, without the formula.
func withoutFormula(field string) string {
	if n := len(field); n > 3 && field[:2] == `="` && field[n-1] == '"' {
		return field[2 : n-1]
	}
	return field
}

// unixLines makes the line ends of old Macs, a CR alone, those of Unix.
func unixLines(r *bufio.Reader) *bufio.Reader {
	head, _ := r.Peek(1 << 16)
	if bytes.IndexByte(head, '\r') < 0 || bytes.IndexByte(head, '\n') >= 0 {
		return r
	}
	return bufio.NewReaderSize(&macLines{r}, 1<<16)
}

// macLines replaces each CR by LF.
type macLines struct{ r io.Reader }

func (m *macLines) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}
