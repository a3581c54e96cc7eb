// Package terminal is for what the commands do only if a person watches: colours, and a progress
// bar.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Is reports whether what is written to w is shown to a person at once.
func Is(w io.Writer) bool {
	f, ok := Beneath(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns the number of columns of w, or 80 if it is not a terminal.
func Width(w io.Writer) int {
	if f, ok := Beneath(w).(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return 80
}

// Style marks text. The zero Style leaves it as it is.
type Style struct{ on bool }

// StyleFor returns the style for text that goes to w: none unless that is a
// terminal, none if the variable NO_COLOR is set to anything, and none if the
// terminal is a dumb one.
func StyleFor(w io.Writer) Style {
	return Style{on: Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// The sequences that select a rendition, and the one that ends it.
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	plain  = "\x1b[0m"
)

func (s Style) mark(with, text string) string {
	if !s.on || text == "" {
		return text
	}
	return with + text + plain
}

// Heading marks titles.
func (s Style) Heading(text string) string { return s.mark(bold, text) }

// Bad marks what is broken.
func (s Style) Bad(text string) string { return s.mark(red, text) }

// Good marks what is in order.
func (s Style) Good(text string) string { return s.mark(green, text) }

// Warn marks what deserves a look.
func (s Style) Warn(text string) string { return s.mark(yellow, text) }

// Data marks drawn data.
func (s Style) Data(text string) string { return s.mark(cyan, text) }
