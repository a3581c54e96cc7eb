package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/cmd/internal/terminal"
)

// table prints rows in columns that are as wide as their widest cell.
type table struct {
	rows   [][]string // the first holds the titles
	widths []int
}

func newTable(titles ...string) *table {
	t := &table{widths: make([]int, len(titles))}
	t.add(titles...)
	return t
}

// add adds a row; cells may be missing at its end.
func (t *table) add(cells ...string) {
	for i, c := range cells {
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c))
	}
	t.rows = append(t.rows, cells)
}

func (t *table) print(w io.Writer, style terminal.Style) error {
	for number, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell)+2))
		}
		line := strings.TrimRight(b.String(), " ")
		if number == 0 {
			line = style.Heading(line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// shown returns s as a cell of a table shows it: quoted if it is empty or would
// break the line or the terminal.
func shown(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if s == "" || strings.ContainsFunc(s, odd) || strings.TrimSpace(s) != s {
		return strconv.Quote(s)
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return shown(s)
}

// formatBytes writes a number of bytes with three digits.
func formatBytes(n int64) string {
	const units = "KMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n)/1000, 0
	for x >= 999.5 && unit < len(units)-1 {
		x /= 1000
		unit++
	}
	precision := 0
	switch {
	case x < 9.995:
		precision = 2
	case x < 99.95:
		precision = 1
	}
	return fmt.Sprintf("%.*f %cB", precision, x, units[unit])
}
