package doc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the length of the longest line of prose, so that the changes of
// a page can be read line by line.
const maxColumns = 120

// TestLines wraps the prose of the pages. Rows of tables cannot be wrapped, and
// what a program prints has the lines that it has.
func TestLines(t *testing.T) {
	decisions, err := filepath.Glob("adr/*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatal("no decisions", err)
	}
	for _, page := range append(append(pages(t), decisions...), "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range longLines(string(text)) {
			t.Errorf("%s:%d: the line is longer than %d columns", page, n, maxColumns)
		}
		for _, n := range wrappedRows(string(text)) {
			t.Errorf("%s:%d: the row of a table is wrapped here; put it on one line", page, n)
		}
	}
}

// longLines returns the numbers of the lines of prose that are too long.
func longLines(text string) (numbers []int) {
	inCode := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inCode = !inCode
		case inCode, strings.HasPrefix(line, "|"), strings.HasPrefix(line, "    "):
		case utf8.RuneCountInString(line) > maxColumns:
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// wrappedRows returns the numbers of the lines that only begin as a row of a table, or only end as one.
func wrappedRows(text string) (numbers []int) {
	inCode := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inCode = !inCode
		case !inCode && !strings.HasPrefix(line, "    ") && strings.HasPrefix(line, "|") != strings.HasSuffix(line, "|"):
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func TestWrappedRows(t *testing.T) {
	text := strings.Join([]string{"| a | b |", "| a |", "| a", "b |", "```", "| a", "```"}, "\n")
	if got := wrappedRows(text); len(got) != 2 || got[0] != 3 || got[1] != 4 {
		t.Errorf("wrapped rows %v, want [3 4]", got)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", maxColumns+1)
	text := strings.Join([]string{"short", long, "| " + long, "```", long, "```", "    " + long, "# " + long, strings.Repeat("é", maxColumns)}, "\n")
	if got := longLines(text); len(got) != 2 || got[0] != 2 || got[1] != 8 {
		t.Errorf("long lines %v, want [2 8]", got)
	}
}
