package main

import (
	"fmt"
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
