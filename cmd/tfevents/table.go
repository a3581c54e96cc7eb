package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
