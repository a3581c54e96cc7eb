package tfproto

import (
	"errors"
	"fmt"
	"strings"
)

// maxTextDepth bounds how deep messages may nest in text. The classic parser
// recurses without a bound, and its stack overflow could not be caught.
// TensorFlow's Python parser gives up earlier.
const maxTextDepth = 1000

// A scanner goes over text once before the classic parser does, without
// knowing any message type. It checks the nesting, and renames the types in
// Any URLs to the names that they are registered under in Go.
type scanner struct {
	text    string
	open    []int // offsets of the brackets not closed yet
	renamed []int // offsets in text of the renamed types
}

// scan returns the text for the classic parser.
func (s *scanner) scan() (string, error) {
	for i := 0; i < len(s.text); i++ {
		switch c := s.text[i]; c {
		case '#':
			i = s.skipTo(i, '\n')
		case '"', '\'':
			i = s.skipString(i)
		case '{', '<':
			s.open = append(s.open, i)
			if len(s.open) > maxTextDepth {
				return "", textErrorAt(s.text, i, fmt.Errorf("messages nest deeper than %d", maxTextDepth))
			}
		case '}', '>':
			if err := s.close(i); err != nil {
				return "", err
			}
		case '/':
			if strings.HasPrefix(s.text[i+1:], publicPrefix) {
				s.renamed = append(s.renamed, i+1)
			}
		}
	}
	if n := len(s.open); n > 0 {
		i := s.open[n-1]
		return "", textErrorAt(s.text, i, fmt.Errorf("%q is never closed", s.text[i:i+1]))
	}
	return s.rename(), nil
}

func (s *scanner) close(i int) error {
	n := len(s.open)
	if n == 0 {
		return textErrorAt(s.text, i, fmt.Errorf("%q closes nothing", s.text[i:i+1]))
	}
	if (s.text[s.open[n-1]] == '{') != (s.text[i] == '}') {
		return textErrorAt(s.text, i, errors.New("bracket of another kind than the one it closes"))
	}
	s.open = s.open[:n-1]
	return nil
}

// skipTo returns the offset of the next c after i, or that of the last byte.
func (s *scanner) skipTo(i int, c byte) int {
	if n := strings.IndexByte(s.text[i:], c); n >= 0 {
		return i + n
	}
	return len(s.text) - 1
}

// skipString returns the offset of the quote that ends the string begun at i.
// A string does not go past its line; the parser will complain of one that does.
func (s *scanner) skipString(i int) int {
	quote := s.text[i]
	for i++; i < len(s.text); i++ {
		switch s.text[i] {
		case quote, '\n':
			return i
		case '\\':
			i++
		}
	}
	return i
}

func (s *scanner) rename() string {
	if len(s.renamed) == 0 {
		return s.text
	}
	var b strings.Builder
	from := 0
	for _, i := range s.renamed {
		b.WriteString(s.text[from:i])
		b.WriteString(privatePrefix)
		from = i + len(publicPrefix)
	}
	b.WriteString(s.text[from:])
	return b.String()
}

// original returns the offset in the text of what is at offset in the
// text that scan returned.
func (s *scanner) original(offset int) int {
	grown := len(privatePrefix) - len(publicPrefix)
	for n, i := range s.renamed {
		if offset <= i+n*grown {
			return offset - n*grown
		}
	}
	return offset - len(s.renamed)*grown
}
