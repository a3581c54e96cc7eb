package table

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// invisible are characters that web pages and spreadsheets leave in names: a word joiner,
// zero-width blanks, and marks of the direction of text and the order of bytes.
var invisible = strings.NewReplacer("\u200b", "", "\u200e", "", "\u200f", "", "\u2060", "", "\ufeff", "")

// Name returns the name of a column as [Table.Columns] has it: without what nobody sees, and
// composed as fields are.
func Name(given string) string { return strings.TrimSpace(invisible.Replace(Compose(given))) }

// compose makes fields equal that look alike: a Mac may store an umlaut as two characters,
// others store it as one.
func (r *Row) compose() {
	for i, field := range r.Fields {
		r.Fields[i] = Compose(field)
	}
}

// Compose returns a text as [Row.Fields] have it.
func Compose(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return norm.NFC.String(text)
		}
	}
	return text
}
