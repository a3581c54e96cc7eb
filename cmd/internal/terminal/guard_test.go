package terminal

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

var guarded = map[string]string{
	"": "",
	"größe \"x\"\n\tb 東京\u3000👩\u200d🚀": "größe \"x\"\n\tb 東京\u3000👩\u200d🚀",
	"a\x1b[2Jb\r\a\x7f":                 `a\x1b[2Jb\r\a\x7f`,
	"\x1b]0;title\a\x1b[8m":             `\x1b]0;title\a\x1b[8m`,
	"\u009b2J \u202eabc\u2066":          `\u009b2J \u202eabc\u2066`,
	"old\xff\x9b.":                      `old\xff\x9b.`,
	bold + "A" + plain + "\x1b[1;5mB":   bold + "A" + plain + `\x1b[1;5mB`,
	red + "ü" + green + yellow + cyan:   red + "ü" + green + yellow + cyan,
}

func TestGuard(t *testing.T) {
	for text, want := range guarded {
		var b bytes.Buffer
		if n, err := io.WriteString(Guard(&b), text); n != len(text) || err != nil || b.String() != want {
			t.Errorf("%q: %q, %d, %v; want %q", text, b.String(), n, err, want)
		}
	}
}

// TestGuardOfPieces writes each text in two pieces and byte by byte, as a buffer does that is full
// in the middle of a character.
func TestGuardOfPieces(t *testing.T) {
	for text, want := range guarded {
		text, want := text+".", want+"."
		for at := range len(text) {
			var b bytes.Buffer
			g := Guard(&b)
			io.WriteString(g, text[:at])
			io.WriteString(g, text[at:])
			if b.String() != want {
				t.Errorf("%q and %q: %q, want %q", text[:at], text[at:], b.String(), want)
			}
		}
		var b bytes.Buffer
		g := Guard(&b)
		for i := range len(text) {
			io.WriteString(g, text[i:i+1])
		}
		if b.String() != want {
			t.Errorf("%q byte by byte: %q, want %q", text, b.String(), want)
		}
	}
}

func TestGuardFails(t *testing.T) {
	lost := errors.New("lost")
	if n, err := io.WriteString(Guard(&full{err: lost}), "a"); n != 0 || err != lost {
		t.Errorf("%d, %v", n, err)
	}
}

// TestScreen leaves a file as it is: what reads that has each byte.
func TestScreen(t *testing.T) {
	var b bytes.Buffer
	if w := Screen(&b); w != io.Writer(&b) {
		t.Errorf("%T", w)
	}
	if w := Guard(&b); Beneath(w) != io.Writer(&b) {
		t.Errorf("beneath a guard is %T", Beneath(w))
	}
}
