package table

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// commentMarks are what lines begin with that are comments.
var commentMarks = []byte{'#', '%'}

// commentOf returns what begins lines that are comments, 0 for none. A first
// line that has it alone may be the header.
func commentOf(text []byte) rune {
	for _, mark := range commentMarks {
		marked := 0
		for i, line := range bytes.SplitN(text, []byte{'\n'}, sniffRows) {
			line = bytes.TrimLeft(line, " \t")
			if len(line) == 0 || line[0] != mark || beginsWithError(line, ",;\t|") {
				continue
			}
			if marked++; marked > 1 || i > 0 || !bytes.ContainsAny(line, ",;\t|") {
				return rune(mark)
			}
		}
	}
	return 0
}

// beginsWords reports whether the mark of comments begins the first field of many rows
// instead, as in the numbers of orders (#1001), colours (#ff0000) and hashtags. Among
// numbers it does not: there a row with it has been taken out.
func (h *head) beginsWords(d Dialect) bool {
	mark := string(d.Comment)
	d.Comment = 0
	rows := newTrial(h, d).rows
	begin := slices.IndexFunc(rows, func(row []string) bool { return !strings.HasPrefix(row[0], mark) })
	if begin < 0 || begin == len(rows)-1 {
		return false
	}
	width := len(rows[begin])
	marked, numbers, rows := 0, 0, rows[begin+1:]
	for _, row := range rows {
		word, ok := strings.CutPrefix(row[0], mark)
		switch {
		case !ok && IsNumber(row[0]):
			numbers++
		case !ok:
		case len(row) != width || strings.Trim(word[:min(1, len(word))], mark+" \t") == "":
			return false
		default:
			marked++
		}
	}
	const fewest = 0.1 // of the rows; fewer are rather words that have been taken out
	return width > 1 && numbers*2 <= len(rows)-marked && float64(marked) >= fewest*float64(len(rows))
}

// isComment reports whether a line, without blanks around it, is one that is left out.
func (s *scanner) isComment(line []byte) bool {
	return s.d.Comment != 0 && bytes.HasPrefix(line, utf8.AppendRune(nil, s.d.Comment)) &&
		!beginsWithError(line, string(s.d.Separator))
}

// beginsWithError reports whether the first field of a line is an error of a spreadsheet,
// which looks like a comment.
func beginsWithError(line []byte, separators string) bool {
	end := bytes.IndexAny(line, separators)
	return end > 0 && isSheetError(string(bytes.TrimSpace(line[:end])))
}

// isSheetError reports whether a field is what a spreadsheet shows of a formula without
// a value, as #DIV/0!, #NAME? and, in other languages, #WERT! and #¿NOMBRE?
func isSheetError(field string) bool {
	if !strings.HasPrefix(field, "#") {
		return false
	}
	switch field {
	case "#N/A", "#N/A N/A", "#NA", "#NV", "#N/D":
		return true
	}
	name := strings.Trim(field, "#!?¡¿")
	return (strings.HasSuffix(field, "!") || strings.HasSuffix(field, "?")) && len(name) > 1 &&
		strings.ToUpper(name) == name && !strings.ContainsAny(name, " .,:;")
}

// isRuler reports whether a line only separates others, as in Markdown and in the tables that the
// clients of databases print: |---|---:|, -----+----- and =====.
func isRuler(line []byte) bool {
	const shortest = 3
	run, longest := 0, 0
	for _, c := range line {
		switch c {
		case '-', '=':
			run++
			longest = max(longest, run)
		case '|', '+', ':', ' ', '\t':
			run = 0
		default:
			return false
		}
	}
	return longest >= shortest
}
