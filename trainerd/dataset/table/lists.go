package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A column may have lists of numbers, as embeddings are: a column is then made for each number, named v.0, v.1 ...
// The formats have such a list as JSON, and those of texts, which stay what they are.

// Limits on the rows that are read to know which columns have lists, and on a list.
const (
	listSample      = 1000
	listSampleBytes = 64 << 20
	maxList         = 1 << 14
)

// lists gives out the rows of a table with a column for each number of its lists.
type lists struct {
	stored  func() (*Row, error)
	names   []string // of the columns that are stored
	lengths []int    // of the lists in them; 0 if there are none
	sampled []Row    // not yet given out
	ended   error    // what ended the sample
	row     Row
	fields  []string // of row
}

// spreadLists has the lists of numbers given out as columns, if those of the first rows have one length.
func (t *Table) spreadLists() {
	l := &lists{stored: t.next, names: t.Columns}
	l.sample()
	l.lengths = make([]int, len(l.names))
	for c := range l.names {
		l.lengths[c] = lengthOfLists(l.sampled, c)
	}
	t.next, t.Columns = l.next, l.columns()
}

// sample reads the first rows.
func (l *lists) sample() {
	for size := 0; len(l.sampled) < listSample && size < listSampleBytes; {
		row, err := l.stored()
		if err != nil {
			l.ended = err
			return
		}
		kept := *row
		kept.Fields = slices.Clone(row.Fields)
		l.sampled = append(l.sampled, kept)
		for _, field := range row.Fields {
			size += len(field)
		}
	}
}

// lengthOfLists returns how many numbers the lists of a column have; 0 if there is anything else in it.
func lengthOfLists(rows []Row, column int) (n int) {
	for _, row := range rows {
		if column >= len(row.Fields) || row.Fields[column] == "" {
			continue
		}
		numbers := numbersOfList(row.Fields[column])
		if len(numbers) == 0 || n > 0 && len(numbers) != n {
			return 0
		}
		n = len(numbers)
	}
	return n
}

// numbersOfList returns the numbers of a list in JSON, "" for null; nothing if it is anything else.
func numbersOfList(text string) (all []string) {
	text = strings.TrimSpace(text)
	inner, begins := strings.CutPrefix(text, "[")
	inner, ends := strings.CutSuffix(inner, "]")
	if !begins || !ends || strings.Count(inner, ",") >= maxList {
		return nil
	}
	for field := range strings.SplitSeq(inner, ",") {
		field = strings.TrimSpace(field)
		if field == "null" {
			field = ""
		} else if !IsNumber(field) {
			return nil
		}
		all = append(all, field)
	}
	return all
}

// columns returns the names of the columns that are given out.
func (l *lists) columns() (all []string) {
	for c, name := range l.names {
		if l.lengths[c] == 0 {
			all = append(all, name)
			continue
		}
		for i := range l.lengths[c] {
			all = append(all, name+"."+strconv.Itoa(i))
		}
	}
	return names(all)
}

func (l *lists) next() (*Row, error) {
	if len(l.sampled) > 0 {
		row := &l.sampled[0]
		l.sampled = l.sampled[1:]
		return l.spread(row)
	}
	if l.ended != nil {
		return nil, l.ended
	}
	row, err := l.stored()
	if err != nil {
		return nil, err
	}
	return l.spread(row)
}

// spread returns a row with the numbers of its lists as fields.
func (l *lists) spread(stored *Row) (*Row, error) {
	l.row, l.fields = *stored, l.fields[:0]
	for c, n := range l.lengths {
		text := ""
		if c < len(stored.Fields) {
			text = stored.Fields[c]
		}
		switch {
		case n == 0:
			l.fields = append(l.fields, text)
		case text == "":
			l.fields = append(l.fields, make([]string, n)...)
		default:
			numbers := numbersOfList(text)
			if len(numbers) != n {
				return nil, &Error{Record: stored.Number, Row: true, Reason: fmt.Sprintf("%s is not a list of %d numbers, as in the rows before", l.names[c], n),
					Hint: "store lists of one length"}
			}
			l.fields = append(l.fields, numbers...)
		}
	}
	l.row.Fields = l.fields
	return &l.row, nil
}

// TextOfWords returns the text that a column has for a list of words, whatever wrote it.
func TextOfWords(words []string) string { return string(appendJSON(nil, words)) }

// wordsOf returns an array of JSON with texts as [TextOfWords] does: Python escapes all letters but those of English.
func wordsOf(array json.RawMessage) (string, error) {
	d := json.NewDecoder(bytes.NewReader(array))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	return string(appendJSON(nil, v)), nil
}

// appendJSON appends a value that can be written, with all letters as they are.
func appendJSON(b []byte, v any) []byte {
	w := bytes.NewBuffer(b)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // fails for nothing that was read from JSON
	return bytes.TrimSuffix(w.Bytes(), []byte("\n"))
}
