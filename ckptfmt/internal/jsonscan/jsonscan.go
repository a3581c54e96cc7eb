// Package jsonscan reads JSON of a known form in one pass: indexes may have a hundred thousand
// entries, for which encoding/json takes most of a second. Whatever it accepts, encoding/json
// decodes to the same values.
package jsonscan

import (
	"encoding/json"
	"math"

	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// Scanner reads a text, which must be UTF-8. After the first thing that it does not
// accept it is bad, and all that it returns is empty: encoding/json may accept it, or
// says what is wrong. The zero value with a Text is ready.
type Scanner struct {
	Text []byte // not kept in results
	At   int    // of what comes next
	Bad  bool

	kept slab.Texts
}

// AtEnd reports whether nothing but blanks is left, and nothing was bad.
func (s *Scanner) AtEnd() bool { return s.Next() == 0 && !s.Bad && s.At == len(s.Text) }

// Next skips blanks and returns the next byte, 0 at the end.
func (s *Scanner) Next() byte {
	for s.At < len(s.Text) && !s.Bad {
		switch c := s.Text[s.At]; c {
		case ' ', '\t', '\n', '\r':
			s.At++
		default:
			return c
		}
	}
	return 0
}

// Take insists on a byte.
func (s *Scanner) Take(c byte) {
	if s.Next() != c {
		s.Bad = true
		return
	}
	s.At++
}

// Element reports whether a list or an object, with n elements read so far, has
// another one; it takes the end if not.
func (s *Scanner) Element(end byte, n int) bool {
	switch c := s.Next(); {
	case c == end:
		s.At++
		return false
	case n == 0 && c != 0:
		return true
	case c == ',':
		s.At++
		return true
	}
	s.Bad = true
	return false
}

// Key reads the name of a member of an object.
func (s *Scanner) Key() string {
	key := s.Quoted()
	s.Take(':')
	return key
}

// Quoted reads a string.
func (s *Scanner) Quoted() string { return s.kept.Keep(s.Raw()) }

// Raw is Quoted whose result may be a part of the text. An escape that makes half of a
// surrogate pair becomes U+FFFD, as in encoding/json.
func (s *Scanner) Raw() []byte {
	s.Take('"')
	begin := s.At
	for i := begin; i < len(s.Text) && !s.Bad; i++ {
		switch c := s.Text[i]; {
		case c == '"':
			s.At = i + 1
			return s.Text[begin:i]
		case c < ' ':
			s.Bad = true
		case c == '\\':
			return s.escaped(begin - 1)
		}
	}
	s.Bad = true
	return nil
}

// escaped reads a string with escapes.
func (s *Scanner) escaped(begin int) []byte {
	for i := begin + 1; i < len(s.Text); i++ {
		switch s.Text[i] {
		case '\\':
			i++
		case '"':
			var text string
			if json.Unmarshal(s.Text[begin:i+1], &text) != nil {
				s.Bad = true
				return nil
			}
			s.At = i + 1
			return []byte(text)
		}
	}
	s.Bad = true
	return nil
}

// Number reads a number from 0 to 2^63-1.
func (s *Scanner) Number() int64 {
	const most = math.MaxInt64
	s.Next()
	n, begin := int64(0), s.At
	for ; s.At < len(s.Text); s.At++ {
		digit := int64(s.Text[s.At]) - '0'
		if digit < 0 || digit > 9 {
			break
		}
		if n > (most-digit)/10 {
			s.Bad = true
			return 0
		}
		n = 10*n + digit
	}
	digits := s.At - begin
	end := byte(0)
	if s.At < len(s.Text) {
		end = s.Text[s.At]
	}
	if digits == 0 || digits > 1 && s.Text[begin] == '0' || end == '.' || end == 'e' || end == 'E' {
		s.Bad = true
		return 0
	}
	return n
}

// Skip reports whether a text comes next, and takes it.
func (s *Scanner) Skip(text string) bool {
	if rest := s.Text[s.At:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return false
	}
	s.At += len(text)
	return true
}
