package dataset

import (
	"fmt"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/trainerd/trainerd/trainerd/dataset/table"
)

// otherEncoding finds a text that was taken for Latin-1 because it is not UTF-8, but has
// hardly a letter of the Latin alphabet, as those of China, Japan, Korea and Russia, or a
// character that Latin-1 does not have.
func (s *Survey) otherEncoding() []string {
	if s.Options.Encoding != table.Latin1 {
		return nil
	}
	var count letters
	for _, p := range s.Columns {
		count.add(p.Name)
		for _, word := range slices.Sorted(maps.Keys(p.values)) {
			count.add(word)
		}
	}
	if !count.unlikely() {
		return nil
	}
	return []string{fmt.Sprintf("the text is not UTF-8 and was read as Latin-1, which makes words such as %s; "+
		"if it is in another encoding, convert it first: iconv -f GB18030 -t UTF-8, or -f SHIFT_JIS, EUC-KR, CP1251 and so on", clip(count.example))}
}

// letters counts those of ASCII, and characters that ASCII lacks.
type letters struct {
	ascii, others int
	impossible    bool   // one was not of the encoding
	example       string // a word with others
}

func (l *letters) add(word string) {
	for _, r := range word {
		switch {
		case r == utf8.RuneError:
			l.impossible, l.example = true, word
		case r >= utf8.RuneSelf:
			l.others++
			if l.example == "" {
				l.example = word
			}
		case unicode.IsLetter(r):
			l.ascii++
		}
	}
}

// unlikely reports whether the letters are not those of a language in Latin-1: there at most
// a fifth has accents.
func (l *letters) unlikely() bool {
	const fewest = 4
	return l.impossible || l.others >= fewest && l.others > l.ascii
}
