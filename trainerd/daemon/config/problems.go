package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Problem is one fault of a config, with its position: a line of the file or a
// flag.
type Problem struct {
	File   string
	Line   int    // 0 if no line is to blame
	Flag   string // the flag that set the value, instead of the file
	Key    string // full, as in "train.steps"
	Reason string
	Hint   string // what to do, may be empty

	meant string // for an unknown key: the one that was probably meant
}

func (p *Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Flag != "":
		b.WriteString(p.Flag)
	case p.Line > 0:
		fmt.Fprintf(&b, "%s:%d", p.File, p.Line)
	default:
		b.WriteString(p.File)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Reason)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return printable(b.String())
}

// printable makes a line of a message, which may hold keys and values of any length, and
// characters that a terminal obeys.
func printable(message string) string {
	const longest = 2000
	if len(message) > longest {
		head, tail := message[:longest/2], message[len(message)-longest/2:] // which has the hint
		message = strings.ToValidUTF8(head, "") + " ... " + strings.ToValidUTF8(tail, "")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, message)
}

// Error holds all problems of a config.
type Error struct {
	Problems []*Problem // ordered by place

	syntax bool // the file could not be parsed, so nothing else is known
}

// maxShown is how many problems a message has room for.
const maxShown = 100

func (e *Error) Error() string {
	shown := e.Problems[:min(len(e.Problems), maxShown)]
	lines := make([]string, len(shown))
	for i, p := range shown {
		lines[i] = p.Error()
	}
	if more := len(e.Problems) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first [Problem].
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

func (e *Error) add(p *Problem) { e.Problems = append(e.Problems, p) }

// err returns e with its problems in order, or nil when there are none.
func (e *Error) err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Flag, b.Flag), cmp.Compare(a.Key, b.Key))
	})
	return e
}

// rank puts lines of the file first, then what is missing from it, then flags.
func rank(p *Problem) int {
	switch {
	case p.Flag != "":
		return 2
	case p.Line == 0:
		return 1
	}
	return 0
}
