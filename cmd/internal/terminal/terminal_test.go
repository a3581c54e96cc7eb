package terminal

import (
	"bytes"
	"os"
	"testing"
)

// TestNoTerminal finds nothing done for a person where there is none.
func TestNoTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Is(file) || Is(new(bytes.Buffer)) || Width(file) != 80 {
		t.Error("a file is taken for a terminal")
	}
	style := StyleFor(file)
	for _, mark := range []func(string) string{style.Heading, style.Bad, style.Good, style.Warn, style.Data} {
		if got := mark("text"); got != "text" {
			t.Errorf("%q", got)
		}
	}
	p := NewProgress(file, "reading")
	p.Expect(100)
	p.Add(10)
	p.Clear()
	if p != nil || p.Before(file) != file {
		t.Error("a bar without a terminal")
	}
}

// TestStyle marks text, and no empty text.
func TestStyle(t *testing.T) {
	style := Style{on: true}
	if got := style.Bad("text"); got != "\x1b[31mtext\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := style.Bad(""); got != "" {
		t.Errorf("%q", got)
	}
}
