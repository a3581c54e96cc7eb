package table

import (
	"bytes"
	"strings"
)

// What texts begin with that are not tables, in small letters. Many of them have commas or
// blanks enough to look like one.
var otherTexts = []struct{ begin, what, hint string }{
	{"<!doctype html", "is a web page", "get the file itself, often behind a link \"raw\" or \"download\""},
	{"<html", "is a web page", "get the file itself, often behind a link \"raw\" or \"download\""},
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
	return nil
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
