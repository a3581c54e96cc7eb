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

// TestBeginnings: a page begins with its title, and a table with its header and the line under it.
func TestBeginnings(t *testing.T) {
	all := pages(t)
	for _, pattern := range []string{"adr/*.md", "../*.md", "../*/README.md", "../*/*/README.md", "../*/*/*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatal(pattern, err)
		}
		all = append(all, more...)
	}
	for _, page := range all {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not begin with a title", page)
		}
		for _, n := range headless(string(text)) {
			t.Errorf("%s:%d: a table begins here without a header", page, n)
		}
	}
}

// headless returns the numbers of the lines at which a table without a header begins.
func headless(text string) (numbers []int) {
	inCode := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inCode = !inCode
		case inCode, !strings.HasPrefix(line, "|"), i > 0 && strings.HasPrefix(lines[i-1], "|"):
		case i+1 == len(lines) || strings.Trim(lines[i+1], "|-: ") != "" || !strings.HasPrefix(lines[i+1], "|"):
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func TestHeadless(t *testing.T) {
	text := strings.Join([]string{"| a |", "", "| a |", "|---|", "| b |", "```", "| a |", "```", "| a |", "| b |", "# a", "| a |"}, "\n")
	if got := headless(text); len(got) != 3 || got[0] != 1 || got[1] != 9 || got[2] != 12 {
		t.Errorf("tables without a header at %v, want [1 9 12]", got)
	}
}
