package ckptdir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// simpleEscapes are the escapes of one letter.
var simpleEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"',
}

// appendUnescaped appends the bytes that the inside of a string encodes. An unknown escape is kept
// as it is written.
func appendUnescaped(b []byte, s string) ([]byte, error) {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return append(b, s...), nil
		}
		b, s = append(b, s[:i]...), s[i+1:]
		if s == "" {
			return nil, errors.New("string ends in a backslash")
		}
		var n int
		var err error
		if b, n, err = appendEscape(b, s); err != nil {
			return nil, err
		}
		s = s[n:]
	}
}

// appendEscape appends what the escape at the beginning of s, after its
// backslash, encodes, and returns how many bytes of s it takes.
func appendEscape(b []byte, s string) ([]byte, int, error) {
	c := s[0]
	if v, ok := simpleEscapes[c]; ok {
		return append(b, v), 1, nil
	}
	switch {
	case c >= '0' && c <= '7':
		n := digits(s, 3, isOctal)
		v, err := strconv.ParseUint(s[:n], 8, 8)
		if err != nil {
			return nil, 0, fmt.Errorf(`escape \%s is not a byte`, s[:n])
		}
		return append(b, byte(v)), n, nil
	case c == 'x':
		n := digits(s[1:], 2, isHex)
		if n == 0 {
			return nil, 0, errors.New(`escape \x has no digits`)
		}
		v, _ := strconv.ParseUint(s[1:1+n], 16, 8) // two digits at most
		return append(b, byte(v)), 1 + n, nil
	case c == 'u':
		return appendRune(b, s, 4)
	case c == 'U':
		return appendRune(b, s, 8)
	case c == 'N':
		return nil, 0, errors.New(`escape \N is not supported`)
	}
	return appendUnknown(b, s)
}

// appendUnknown keeps an escape that means nothing. Python's protobuf turns a
// character beyond Latin-1 after the backslash into its number on the way.
func appendUnknown(b []byte, s string) ([]byte, int, error) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r <= 0xff:
		return append(append(b, '\\'), s[:n]...), n, nil
	case r <= 0xffff:
		return fmt.Appendf(b, `\u%04x`, r), n, nil
	}
	return fmt.Appendf(b, `\U%08x`, r), n, nil
}

// appendRune appends the character that n hexadecimal digits name.
func appendRune(b []byte, s string, n int) ([]byte, int, error) {
	if digits(s[1:], n, isHex) < n {
		return nil, 0, fmt.Errorf(`escape \%c has fewer than %d digits`, s[0], n)
	}
	v, _ := strconv.ParseUint(s[1:1+n], 16, 32) // eight digits at most
	if v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
		return nil, 0, fmt.Errorf(`escape \%s is not a character`, s[:1+n])
	}
	return utf8.AppendRune(b, rune(v)), 1 + n, nil
}

// digits counts the leading bytes of s, at most limit, that ok accepts.
func digits(s string, limit int, ok func(byte) bool) int {
	n := 0
	for n < len(s) && n < limit && ok(s[n]) {
		n++
	}
	return n
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
