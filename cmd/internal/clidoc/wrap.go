package clidoc

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// WrapHelp has the help of all programs in this process end its lines before a
// column. Main calls it, once, where a person reads the help; the lines of one that
// goes to a file or a pipe are as they are.
func WrapHelp(width int) {
	cli.HelpPrinter = func(w io.Writer, text string, data any) {
		var b bytes.Buffer
		cli.HelpPrinterCustom(&b, text, data, nil)
		for line := range strings.Lines(b.String()) {
			for _, part := range wrapLine(strings.TrimRight(line, "\n"), width) {
				io.WriteString(w, part+"\n") // whether it arrives is for the terminal
			}
		}
	}
}

// wrapLine divides a line of a help. What follows is below the explanation of a
// flag or command, or below the beginning of a text.
func wrapLine(line string, width int) (lines []string) {
	if utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	hang := hangOf(line)
	if hang > width*2/3 {
		hang = leading(line) + 4
	}
	current, empty := line[:leading(line)], true
	for i, word := range strings.SplitAfter(line[leading(line):], " ") {
		if i > 0 && !empty && utf8.RuneCountInString(current)+utf8.RuneCountInString(strings.TrimRight(word, " ")) > width {
			lines = append(lines, strings.TrimRight(current, " "))
			current, empty = strings.Repeat(" ", hang), true
		}
		if empty && strings.TrimSpace(word) == "" && len(lines) > 0 {
			continue // of the blanks between the columns
		}
		current, empty = current+word, empty && strings.TrimSpace(word) == ""
	}
	return append(lines, strings.TrimRight(current, " "))
}

func leading(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// hangOf returns the column of the explanation in a line, or that of its text.
func hangOf(line string) int {
	begin := leading(line)
	if at := strings.Index(line[begin:], "  "); at >= 0 {
		at += begin
		return at + leading(line[at:])
	}
	return begin
}
