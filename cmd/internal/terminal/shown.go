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
