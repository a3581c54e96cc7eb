package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Shown returns a name as a table or a message has it: quoted if it has characters that
// move the cursor or cannot be seen.
func Shown(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if name == "" || strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// Plain returns a text of several words or lines as a terminal may have it: with escapes, as Go
// writes them, for what moves the cursor, changes colours or cannot be seen.
func Plain(text string) string {
	if !strings.ContainsFunc(text, isOddInText) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if part := text[:n]; isOddInText(r) {
			b.WriteString(escaped(part))
		} else {
			b.WriteString(part)
		}
		text = text[n:]
	}
	return b.String()
}

// Line returns a text as one line that a terminal may have, as [Plain] does.
func Line(text string) string { return strings.ReplaceAll(Plain(text), "\n", `\n`) }

// escaped returns a text with escapes as Go writes them, without quotes.
func escaped(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

func isOddInText(r rune) bool {
	return r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError
}
