package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"unicode/utf8"
)

// printList writes an array, an element a line.
func printList[T any](w io.Writer, list []T) error {
	buf := bufio.NewWriter(w)
	buf.WriteByte('[')
	for i, v := range list {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if i > 0 {
			buf.WriteByte(',')
		}
		buf.WriteByte('\n')
		buf.Write(b)
	}
	if len(list) > 0 {
		buf.WriteByte('\n')
	}
	buf.WriteString("]\n")
	return buf.Flush()
}

// printObject writes one value on a line.
func printObject(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// printCSV writes rows, the first of which names the columns.
func printCSV(w io.Writer, rows [][]string) error {
	out := csv.NewWriter(w)
	return out.WriteAll(rows)
}

// printable quotes a name that would disturb a terminal or a table.
func printable(name string) string {
	if isPlain(name) {
		return name
	}
	plain := name != "" && utf8.ValidString(name)
	for _, r := range name {
		plain = plain && strconv.IsPrint(r) && r != '"' && r != '\\'
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}

// isPlain reports whether a name is of printable ASCII, as most are.
func isPlain(name string) bool {
	for i := range len(name) {
		if !plainBytes[name[i]] {
			return false
		}
	}
	return name != ""
}

// plainBytes are the characters of names that are printed as they are.
var plainBytes = func() (plain [256]bool) {
	for b := byte(' '); b <= '~'; b++ {
		plain[b] = b != '"' && b != '\\'
	}
	return plain
}()

// shapeText is a shape without blanks, so that tools can cut columns.
func shapeText(shape []int64) string { return string(appendShape(nil, shape)) }

func appendShape(b []byte, shape []int64) []byte {
	b = append(b, '[')
	for i, d := range shape {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	return append(b, ']')
}
