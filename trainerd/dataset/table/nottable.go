package table

import (
	"bytes"
	"strconv"
	"strings"
)

// What texts begin with that are not tables, in small letters. Many of them have commas or
// blanks enough to look like one.
var otherTexts = []struct{ begin, what, hint string }{
	{"<!doctype html", "is a web page", "get the file itself, often behind a link \"raw\" or \"download\""},
	{"<html", "is a web page", "get the file itself, often behind a link \"raw\" or \"download\""},
	{"<table", "is a table of HTML", "store it as CSV, as with pandas.read_html"},
	{"\\begin{", "is LaTeX", "store the table as CSV"},
	{"<?xml", "is XML", "export the table as CSV"},
	{"@relation", "is ARFF, as of Weka", "store the table as CSV, with the names of its attributes in the first row"},
	{"version https://git-lfs", "is a pointer of Git LFS, not the file itself", "get the file with: git lfs pull"},
}

// notTable returns an error if a text is known to be of another kind than a table.
func notTable(text []byte) *Error {
	const longest = 64
	text = afterComments(text)
	begin := strings.ToLower(string(text[:min(len(text), longest)]))
	for _, other := range otherTexts {
		if strings.HasPrefix(begin, other.begin) {
			return &Error{Reason: other.what, Hint: other.hint}
		}
	}
	if strings.HasPrefix(strings.Join(strings.Fields(begin), ""), "[[") {
		return &Error{Reason: "is JSON whose rows are arrays, without the names of columns", Hint: "store an object for each row, as with DataFrame.to_json(orient=\"records\")"}
	}
	if line, _, _ := bytes.Cut(text, []byte("\n")); isLIBSVM(string(line)) {
		return &Error{Reason: "is LIBSVM, with the numbers of the columns in each row", Hint: "store the table as CSV or Parquet, with a field for each column"}
	}
	return nil
}

// isLIBSVM reports whether a line is one of LIBSVM, such as +1 3:0.5 7:1: a label, and numbers of columns with
// their values. Times of day look like those, but have two digits after the colon.
func isLIBSVM(line string) bool {
	fields := strings.Fields(line)
	if len(fields) < 2 || !IsNumber(fields[0]) {
		return false
	}
	times := true
	for _, field := range fields[1:] {
		column, value, ok := strings.Cut(field, ":")
		if _, err := strconv.ParseUint(column, 10, 32); err != nil || !ok || !IsNumber(value) {
			return false
		}
		times = times && len(value) == 2
	}
	return !times
}

// afterComments returns a text from its first line that is neither blank nor a comment of
// ARFF.
func afterComments(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		if len(text) == 0 || text[0] != '%' {
			return text
		}
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
	}
}
