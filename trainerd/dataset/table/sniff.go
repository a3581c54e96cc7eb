package table

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Limits on the input that is examined to detect a dialect.
const (
	sniffRows  = 1000
	sniffTitle = 10  // lines before the table at most
	fewestFit  = 0.9 // of the rows have the same number of fields
)

// separators are those that are tried, the first of equals wins.
var separators = []rune{',', ';', '\t', '|', ' '}

// trial is the beginning of a file, cut by one dialect.
type trial struct {
	d     Dialect
	rows  [][]string
	lines []int // on which the rows begin
	bad   int   // rows that could not be cut
	whole bool  // there are no more rows
	width int   // fields of most rows
	first int   // the row with which the table begins
	score float64

	likely Notation
}

// sniff finds out what d leaves open.
func sniff(h *head, d Dialect, likely Notation) (Dialect, error) {
	if len(bytes.TrimSpace(h.text)) == 0 {
		return d, &Error{Reason: "is empty", Hint: "a table has rows of two columns or more"}
	}
	if d.Encoding == "" {
		d.Encoding = h.encoding
	}
	if separator, ok := declaredSeparator(h.text); ok && d.Separator == 0 && d.Skip == 0 {
		d.Separator, d.Skip = separator, 1
	}
	var best *trial
	for _, c := range candidates(h, d) {
		t := newTrial(h, c)
		if t.judge() && (best == nil || t.score > best.score) {
			best = t
		}
	}
	if best == nil {
		d.Decimal, d.Thousands = likely.Decimal, likely.Thousands // of a single column
		return d, &Error{Reason: "is not CSV of two columns or more, with rows of equal length",
			Hint: "separate the columns by commas, semicolons or tabs, and remove what is not part of the table"}
	}
	best.likely = likely
	return best.dialect(), nil
}

// declaredSeparator returns the separator that the first line names for
// spreadsheets, as in sep=; false if it does not.
func declaredSeparator(text []byte) (rune, bool) {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	name, value, ok := bytes.Cut(bytes.Trim(line, "\" \r"), []byte{'='})
	if !ok || !bytes.EqualFold(name, []byte("sep")) || len(value) != 1 || !slices.Contains(separators, rune(value[0])) {
		return 0, false
	}
	return rune(value[0]), true
}

// candidates are the dialects to try.
func candidates(h *head, d Dialect) (all []Dialect) {
	seps, quotes := separators, []rune{'"', '\''}
	if d.Separator != 0 {
		seps = []rune{d.Separator}
	}
	if d.Quote != 0 {
		quotes = []rune{d.Quote}
	} else if bytes.IndexByte(h.text, '\'') < 0 {
		quotes = quotes[:1]
	}
	comment := d.Comment
	if comment == 0 {
		comment = commentOf(h.text)
	}
	for _, q := range quotes {
		for _, s := range seps {
			c := d
			c.Separator, c.Quote, c.Comment = s, q, comment
			if d.Comment == 0 && comment != 0 && h.beginsWords(c) {
				c.Comment = 0
			}
			all = append(all, c)
		}
	}
	return all
}

func newTrial(h *head, d Dialect) *trial {
	t := &trial{d: d, whole: h.whole}
	s := newScanner(unixLines(bufio.NewReader(bytes.NewReader(h.text))), d)
	for len(t.rows) <= sniffRows+sniffTitle {
		err := s.next()
		e, _ := err.(*Error)
		switch {
		case err == nil:
			t.rows = append(t.rows, s.fields(nil))
			t.lines = append(t.lines, s.first)
			continue
		case err == io.EOF:
		case e != nil && e.Row:
			t.bad++
			continue
		case h.whole || len(t.rows) < 2:
			t.rows = nil // the dialect makes no sense of it
		}
		if !h.whole && len(t.rows) > 1 { // the last may be cut
			t.rows = t.rows[:len(t.rows)-1]
		}
		return t
	}
	t.whole = false
	return t
}

// judge finds the table among the rows, and reports whether there is one.
func (t *trial) judge() bool {
	counts := make(map[int]int)
	for _, row := range t.rows {
		counts[len(row)]++
	}
	for _, row := range t.rows { // of equals the first, but for titles
		if n, m := counts[len(row)], counts[t.width]; n > m || n == m && t.width < 2 {
			t.width = len(row)
		}
	}
	if t.width < 2 {
		return false
	}
	t.first = slices.IndexFunc(t.rows, func(row []string) bool { return len(row) == t.width })
	if t.lacksName() {
		t.first--
	}
	t.passTitles()
	if t.first > sniffTitle {
		return false
	}
	fit, clean, cells := 0, 0, 0
	for _, row := range t.rows[t.first:] {
		if len(row) == t.width {
			fit++
		}
		for _, field := range row {
			cells++
			if isClean(field) {
				clean++
			}
		}
	}
	n := len(t.rows) - t.first + t.bad
	if t.lacksNameAt(t.first) {
		fit++
	}
	share := float64(fit) / float64(n)
	t.score = share * float64(clean) / float64(cells)
	if t.first > 0 {
		t.score /= 2 // a dialect that needs no title is likelier
	}
	return share >= fewestFit && t.score > 0
}

// passTitles leaves rows aside that spreadsheets have filled up with separators: a title in
// one field, or nothing, above a row with names alone. Columns without a name are empty.
func (t *trial) passTitles() {
	const narrowest = 3
	first := t.first
	for first < len(t.rows) && first <= sniffTitle && len(t.rows[first]) == t.width && filled(t.rows[first]) <= 1 {
		first++
	}
	if first == len(t.rows) || t.width < narrowest || len(t.rows[first]) != t.width {
		return
	}
	for c, name := range t.rows[first] {
		if c > 0 && name == "" && !t.isEmptyBelow(first, c) || IsNumber(name) {
			return
		}
	}
	t.first = first
}

// filled returns how many fields have something in them.
func filled(fields []string) (n int) {
	for _, f := range fields {
		if f != "" {
			n++
		}
	}
	return n
}

// isEmptyBelow reports whether a column has nothing below a row.
func (t *trial) isEmptyBelow(row, column int) bool {
	return !slices.ContainsFunc(t.rows[row+1:], func(r []string) bool { return column < len(r) && r[column] != "" })
}

// lacksName reports whether the row before the table is a header without the
// name of the first column.
func (t *trial) lacksName() bool { return t.first > 0 && t.lacksNameAt(t.first-1) }

func (t *trial) lacksNameAt(row int) bool {
	return t.width > 2 && len(t.rows[row]) == t.width-1 && !slices.ContainsFunc(t.rows[row], IsNumber)
}

// isClean reports whether a field has no separators in it, as those of a wrong
// dialect have. Before a blank they are punctuation.
func isClean(field string) bool {
	if n := len(field) - 1; n > 0 && field[0] == field[n] && (field[0] == '"' || field[0] == '\'') {
		return false // quotes of another dialect
	}
	if areAligned(field) {
		return false
	}
	for i := range len(field) {
		if strings.IndexByte(",;\t|", field[i]) >= 0 && (i+1 == len(field) || field[i+1] != ' ') {
			_, decimal := plainNumber(field, ',', '.')
			_, grouped := plainNumber(field, '.', ',')
			return decimal || grouped
		}
	}
	return true
}

// areAligned reports whether a field has several numbers, with blanks between them that
// align columns.
func areAligned(field string) bool {
	if !strings.Contains(field, "  ") {
		return false
	}
	numbers := strings.Fields(field)
	return len(numbers) > 1 && !slices.ContainsFunc(numbers, func(n string) bool { return !IsNumber(n) && !IsMissing(n) })
}

// dialect returns what was found.
func (t *trial) dialect() Dialect {
	d, rows := t.d, t.rows[t.first:]
	first := t.first
	if t.whole && len(rows) > 2 && len(rows[0]) == t.width && isCount(rows[0][0], len(rows)-1) && isCount(rows[0][1], t.width-1) {
		rows, first = rows[1:], first+1 // scikit-learn's files begin with their size
	}
	if first > 0 && d.Skip == 0 {
		d.Skip = t.lines[first] - 1
	}
	if d.Decimal == 0 && d.Thousands == 0 {
		d.Decimal, d.Thousands = notation(rows, d.Separator, t.likely)
		if d.Thousands == 0 {
			d.Thousands = groupMark(rows, d)
		}
	}
	if d.HeaderRows == 0 && hasTwoHeaders(rows, numbersOf(d)) {
		d.Header, d.HeaderRows = true, 2
	}
	if !d.Header {
		d.Header = len(rows) > 1 && (t.lacksNameAt(first) || hasHeader(rows, numbersOf(d)))
	}
	return d
}

func isCount(field string, n int) bool { return field == strconv.Itoa(n) }

// notation returns the decimal mark and that between thousands, 0 for those of
// Go. Rows that do not show it have the likely one.
func notation(rows [][]string, separator rune, likely Notation) (decimal, thousands rune) {
	var commas, points, groups, clearGroups, pointGroups int
	for _, row := range rows[min(1, len(rows)-1):] {
		for _, field := range row {
			if !strings.ContainsAny(field, ",.") {
				continue
			}
			if _, number, _, ok := measured(field); ok {
				field = number
			}
			_, asDecimal := plainNumber(field, ',', '.')
			_, asGroups := plainNumber(field, '.', ',')
			comma := strings.Contains(field, ",")
			switch {
			case !comma && asGroups && !asDecimal:
				points++ // 1.5
			case !comma && asGroups:
				pointGroups++ // 1.234
			case comma && asGroups && !asDecimal:
				clearGroups++ // 1,234.5 or 1,234,567
			case comma && asDecimal && !asGroups:
				commas++ // 1,5
				if strings.Contains(field, ".") {
					pointGroups++
				}
			case comma && asGroups:
				groups++ // 1,234
			}
		}
	}
	switch {
	case commas+points+clearGroups == 0 && likely != Notation{}:
		return likely.Decimal, likely.Thousands
	case commas > 0 && points == 0 && clearGroups == 0:
		if pointGroups > 0 {
			thousands = '.'
		}
		return ',', thousands
	case separator == ';' && groups > 0 && commas == 0 && points == 0 && clearGroups == 0:
		return ',', 0 // where semicolons separate, commas are decimal marks
	case clearGroups > 0 && commas == 0, groups > 0 && commas == 0 && separator == ',':
		return 0, ','
	}
	return 0, 0
}

// hasHeader reports whether the first row has names: a word where all others
// have numbers, or words that are nowhere among the values; or the numbers of
// the columns, as pandas writes them.
func hasHeader(rows [][]string, number func(string) string) bool {
	isNum := func(field string) bool { return IsNumber(field) || IsNumber(number(field)) }
	names := rows[0]
	if isNumbering(names) {
		return true
	}
	repeated, seen := false, make(map[string]bool)
	for c, name := range names {
		if isNum(name) || seen[name] || c > 0 && IsMissing(name) {
			repeated = repeated || isNum(name) || seen[name]
			continue
		}
		seen[name] = true
		if name != "" && numbersBelow(rows, c, isNum) {
			return true
		}
	}
	return !repeated && len(rows) > 2 && !namesAmongValues(rows)
}

// hasTwoHeaders reports whether the names of the columns are in two rows, or have
// the units of the numbers below them: both rows have words alone, among them one
// above each of several columns of numbers, and none that is there again below.
func hasTwoHeaders(rows [][]string, number func(string) string) bool {
	const fewestRows, fewestNumbers = 4, 2
	if len(rows) < fewestRows || len(rows[0]) != len(rows[1]) {
		return false
	}
	isNum := func(field string) bool { return IsNumber(field) || IsNumber(number(field)) }
	for _, row := range rows[:2] {
		if slices.ContainsFunc(row, isNum) {
			return false
		}
	}
	numbers := 0
	for c, second := range rows[1] {
		if slices.ContainsFunc(rows[2:], func(row []string) bool { return c < len(row) && row[c] == second && second != "" }) {
			return false
		}
		if numbersBelow(rows[1:], c, isNum) {
			if IsMissing(second) {
				return false
			}
			numbers++
		}
	}
	return numbers >= fewestNumbers
}

// numbersBelow reports whether a column has numbers, and only those, after its
// first row.
func numbersBelow(rows [][]string, c int, isNum func(string) bool) bool {
	any := false
	for _, row := range rows[1:] {
		if c >= len(row) || IsMissing(row[c]) {
			continue
		}
		if !isNum(row[c]) {
			return false
		}
		any = true
	}
	return any
}

// namesAmongValues reports whether a column has its first field again below, or
// no field there twice: then a name looks like a value.
func namesAmongValues(rows [][]string) bool {
	twice := false
	for c, name := range rows[0] {
		values := make(map[string]bool)
		for _, row := range rows[1:] {
			if c >= len(row) {
				continue
			}
			if row[c] == name {
				return true
			}
			twice = twice || values[row[c]] && !IsMissing(row[c])
			values[row[c]] = true
		}
	}
	return !twice
}

// isNumbering reports whether fields are the numbers from 0, after one without a
// name or not.
func isNumbering(fields []string) bool {
	if len(fields) > 2 && fields[0] == "" {
		fields = fields[1:]
	}
	for i, f := range fields {
		if f != strconv.Itoa(i) {
			return false
		}
	}
	return len(fields) > 2
}
