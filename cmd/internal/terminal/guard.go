package terminal

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Screen returns the standard output of a command: a [Guard] where a person sees it at once, and
// w itself where a file or another program is to have every byte.
func Screen(w io.Writer) io.Writer {
	if Is(w) {
		return Guard(w)
	}
	return w
}

// Guard returns a writer of what people read. Names, tags and texts in files may be another
// user's, and a terminal obeys what it is sent: so what moves the cursor, changes the order of the
// text or is not text is shown with escapes, as Go writes them. The marks of a [Style] pass. What a
// write ends within, a character or a mark, is written with the next one. It is safe for concurrent use.
func Guard(w io.Writer) io.Writer { return &guard{w: w, turn: make(chan struct{}, 1)} }

type guard struct {
	w    io.Writer
	turn chan struct{}
	cut  []byte // the beginning of a character or mark; owned by who has the turn
}

// Beneath returns what the guard writes to.
func (g *guard) Beneath() io.Writer { return g.w }

func (g *guard) Write(b []byte) (int, error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	text := append(g.cut, b...)
	whole := len(text) - unfinished(text)
	safe := harmless(text[:whole], isHarmful)
	g.cut = bytes.Clone(text[whole:])
	if _, err := g.w.Write(safe); err != nil {
		return 0, err
	}
	return len(b), nil
}

// unfinished returns how many bytes at the end of a text are the beginning of a character or
// of a mark.
func unfinished(text []byte) int {
	for n := 1; n <= min(len(text), len(red)-1); n++ {
		end := text[len(text)-n:]
		if end[0] == '\x1b' && isBeginningOfMark(string(end)) {
			return n
		}
		if n < utf8.UTFMax && utf8.RuneStart(end[0]) && !utf8.FullRune(end) {
			return n
		}
	}
	return 0
}

var marks = []string{bold, red, green, yellow, cyan, plain}

func isBeginningOfMark(text string) bool {
	for _, m := range marks {
		if len(text) < len(m) && strings.HasPrefix(m, text) {
			return true
		}
	}
	return false
}

// harmless returns a text with escapes for the harmful characters that are in no mark.
func harmless(text []byte, harmful func(rune) bool) []byte {
	if !bytes.ContainsFunc(text, harmful) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 {
		n := markLength(text)
		if n > 0 {
			out, text = append(out, text[:n]...), text[n:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		if harmful(r) {
			out = append(out, escaped(string(text[:n]))...)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// markLength returns the length of the mark that a text begins with, 0 for none.
func markLength(text []byte) int {
	if text[0] != '\x1b' {
		return 0
	}
	for _, m := range marks {
		if bytes.HasPrefix(text, []byte(m)) {
			return len(m)
		}
	}
	return 0
}

// isHarmful reports whether a terminal may obey a character: it is a control character, changes the
// direction of the text, or is not a character at all.
func isHarmful(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f, r == utf8.RuneError:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
