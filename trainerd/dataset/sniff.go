package dataset

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// Sample is what the first rows of a CSV file look like, for who has to find
// out how to read it.
type Sample struct {
	Comma  rune
	Header bool
	// Columns holds their names, or numbers from 0 where there is no header.
	Columns []string
	// Rows are the first rows without the header, sampleRows at most.
	Rows [][]string
}

// sampleRows is how many rows a Sample has at most, and sampleBytes how much of
// a file is read for them.
const (
	sampleRows  = 1000
	sampleBytes = 8 << 20
)

// Sniff returns what the beginning of a CSV file looks like. The separator is
// the one that gives rows of equal length, of several columns. The first row is
// a header if it has a word where all others have numbers.
func Sniff(name string) (*Sample, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &Error{File: name, Reason: "cannot be read", Err: unwrapPath(err)}
	}
	defer f.Close()
	plain, err := decompress(f)
	if err != nil {
		return nil, &Error{File: name, Reason: "is compressed, but cannot be decompressed", Err: unwrapPath(err)}
	}
	head, err := io.ReadAll(io.LimitReader(plain, sampleBytes))
	if err != nil {
		return nil, &Error{File: name, Reason: "cannot be read", Err: unwrapPath(err)}
	}
	whole := len(head) < sampleBytes
	var best *Sample
	for _, comma := range []rune{',', ';', '\t', '|', ' '} {
		if s := sampleOf(string(head), comma, whole); s != nil && (best == nil || len(s.Columns) > len(best.Columns)) {
			best = s
		}
	}
	if best == nil {
		return nil, &Error{File: name, Reason: "is not CSV of two columns or more, with rows of equal length",
			Hint: "separate the columns by commas, semicolons or tabs"}
	}
	return best, nil
}

// sampleOf reads a text with one separator, nil if that makes no sense of it.
func sampleOf(head string, comma rune, whole bool) *Sample {
	r := csv.NewReader(strings.NewReader(head))
	r.Comma = comma
	var rows [][]string
	for len(rows) <= sampleRows {
		row, err := r.Read()
		if errors.Is(err, io.EOF) || err != nil && !whole && len(rows) > 1 {
			break // the last row may be cut
		}
		if err != nil {
			return nil
		}
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 || len(rows[0]) < 2 {
		return nil
	}
	s := &Sample{Comma: comma, Rows: rows}
	s.Header = len(rows) > 1 && hasHeader(rows)
	s.Columns = rows[0]
	if s.Header {
		s.Rows = rows[1:]
	} else {
		s.Columns = make([]string, len(rows[0]))
		for i := range s.Columns {
			s.Columns[i] = strconv.Itoa(i)
		}
	}
	s.Rows = s.Rows[:min(len(s.Rows), sampleRows)]
	return s
}

// hasHeader reports whether some column has a word in the first row alone.
func hasHeader(rows [][]string) bool {
	for c, first := range rows[0] {
		if isNumber(first) || first == "" {
			continue
		}
		numbers := true
		for _, row := range rows[1:] {
			numbers = numbers && (isNumber(row[c]) || row[c] == "")
		}
		if numbers {
			return true
		}
	}
	return false
}

func isNumber(field string) bool {
	v, err := strconv.ParseFloat(field, 64)
	return err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// Words returns the columns that have something else than numbers.
func (s *Sample) Words() (columns []int) {
	for c := range s.Columns {
		for _, row := range s.Rows {
			if !isNumber(row[c]) {
				columns = append(columns, c)
				break
			}
		}
	}
	return columns
}

// Column returns the column with a name, or with a number from 0, below 0 from
// the end; false if there is none.
func (s *Sample) Column(text string) (int, bool) {
	if s.Header {
		for i, name := range s.Columns {
			if name == text {
				return i, true
			}
		}
	}
	i, err := strconv.Atoi(text)
	if i < 0 {
		i += len(s.Columns)
	}
	return i, err == nil && i >= 0 && i < len(s.Columns)
}

// Classes returns how many classes the numbers of a column name, or 0 if they
// are no classes: whole numbers from 0 up, not so many that each is rare.
func (s *Sample) Classes(column int) int {
	const most = 1000 // more are hardly classes
	seen, greatest := make(map[int]bool), 0
	for _, row := range s.Rows {
		v, err := strconv.ParseFloat(row[column], 64)
		if err != nil || v < 0 || v != math.Trunc(v) || v >= most {
			return 0
		}
		seen[int(v)] = true
		greatest = max(greatest, int(v))
	}
	if len(seen) < 2 || 5*len(seen) > len(s.Rows) && len(seen) > 5 {
		return 0
	}
	return greatest + 1
}
