package table

import (
	"fmt"
	"strings"
	"testing"
)

// rowCount returns how many rows a CSV has below its header.
func rowCount(t *testing.T, text string) int {
	t.Helper()
	tab, err := New(strings.NewReader(text), Options{Sniff: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := read(t, tab)
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

func table60(line func(i int) string) string {
	var b strings.Builder
	for i := range 60 {
		b.WriteString(line(i))
	}
	return b.String()
}

func TestLinesThatBeginLikeComments(t *testing.T) {
	every := func(n int, yes, no string) func(int) string {
		return func(i int) string {
			if i%n == n-1 {
				return fmt.Sprintf(yes, i, i%2)
			}
			return fmt.Sprintf(no, i, i%2)
		}
	}
	for _, c := range []struct {
		name, text string
		rows       int
	}{
		{"numbers of orders", "order,x,y\n" + table60(every(1, "#10%d,5,%d\n", "")), 60},
		{"hashtags among words", "tag,x,y\n" + table60(every(3, "#love%d,5,%d\n", "none%d,5,%d\n")), 60},
		{"percent signs", "word;x;y\n" + table60(every(2, "%%a%d;5;%d\n", "b%d;5;%d\n")), 60},
		{"errors of spreadsheets", "a,x,y\n" + table60(every(20, "#DIV/0!,%d,%d\n", "7,%d,%d\n")), 60},
		{"errors next to comments", "# of 2024\n# by me\na\tx\ty\n" + table60(every(20, "#N/A\t%d\t%d\n", "7\t%d\t%d\n")), 60},
		{"numbers that were taken out", "a,x,y\n" + table60(every(6, "#7,%d,%d\n", "7,%d,%d\n")), 50},
		{"a word that was taken out", "a,x,y\n" + table60(every(30, "#pear%d,5,%d\n", "apple%d,5,%d\n")), 58},
		{"remarks", "a,x,y\n" + table60(every(6, "# pear, %d, %d\n", "apple%d,5,%d\n")), 50},
		{"headings of blocks", "# a x y\n" + table60(every(6, "# a%d x y%d\n", "1 %d %d\n")), 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rowCount(t, c.text); got != c.rows {
				t.Errorf("%d rows; want %d", got, c.rows)
			}
		})
	}
}

func TestErrorsOfSpreadsheetsAreMissing(t *testing.T) {
	for _, field := range []string{"#N/A", "#NV", "#DIV/0!", "#REF!", "#VALUE!", "#NAME?", "#NUM!", "#WERT!", "#¡VALOR!", "#¿NOMBRE?"} {
		if !IsMissing(field) {
			t.Errorf("%s is not missing", field)
		}
	}
	for _, field := range []string{"#", "#!", "#1!", "#1001", "#love!", "#ff0000", "WERT!", "#OH NO!"} {
		if IsMissing(field) {
			t.Errorf("%s is missing", field)
		}
	}
}

// TestRulers: lines that only separate the header from the rows are left out, as Markdown, psql and
// mysql write them; rows of numbers and of marks for missing values stay.
func TestRulers(t *testing.T) {
	row := func(form string) string { return table60(func(i int) string { return fmt.Sprintf(form, i*i, i%2) }) }
	for _, c := range []struct {
		name, text string
		columns    string
	}{
		{"Markdown", "| a | kind |\n|---|:---:|\n" + row("| %d | k%d |\n"), "[ a kind ]"},
		{"psql", " a  | kind \n----+------\n" + row(" %d | k%d\n"), "[a kind]"},
		{"mysql", "+----+------+\n| a  | kind |\n+----+------+\n" + row("| %d | k%d |\n"), "[ a kind ]"},
		{"blanks", "a    kind\n---- ----\n" + row("%d   k%d\n"), "[a kind]"},
		{"none", "a,kind\n" + row("-%d,k%d\n"), "[a kind]"},
	} {
		tab, err := New(strings.NewReader(c.text), Options{Sniff: true})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		columns := strings.NewReplacer("Unnamed: 0", "", "Unnamed: 3", "").Replace(fmt.Sprint(tab.Columns))
		if rows, err := read(t, tab); err != nil || len(rows) != 60 || columns != c.columns {
			t.Errorf("%s: %d rows, %s, %v; want 60, %s", c.name, len(rows), columns, err, c.columns)
		}
	}
	if n := rowCount(t, "a,b,c\n"+strings.Repeat("1,2,3\n---,---,---\n", 30)); n != 60 {
		t.Errorf("%d rows, want 60 with those of missing values", n)
	}
}
