package safetensors

import (
	"encoding/json"
	"errors"
	"strconv"
)

// scanner reads the JSON of a header in one pass: models have up to a hundred
// thousand tensors, and encoding/json takes most of a second for these. What it
// accepts means the same to that; what it does not, that reads again.
type scanner struct {
	b  []byte
	at int
}

var errScan = errors.New("it is not a header that is read in one pass")

func (s *scanner) fail() error { return errScan }

// next skips blanks and returns the next byte, 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.b) {
		switch c := s.b[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take insists on a byte.
func (s *scanner) take(c byte) error {
	if s.next() != c {
		return s.fail()
	}
	s.at++
	return nil
}

// each reads a list or an object: f reads an element after another.
func (s *scanner) each(begin, end byte, f func() error) error {
	if err := s.take(begin); err != nil {
		return err
	}
	if s.next() == end {
		s.at++
		return nil
	}
	for {
		if err := f(); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.at++
		case end:
			s.at++
			return nil
		default:
			return s.fail()
		}
	}
}

// members reads an object: f reads the value of each key.
func (s *scanner) members(f func(key string) error) error {
	return s.each('{', '}', func() error {
		key, err := s.text()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		return f(key)
	})
}

// text reads a string. The header is UTF-8; an escape that makes half of a
// surrogate pair becomes U+FFFD, as in encoding/json.
func (s *scanner) text() (string, error) {
	if s.next() != '"' {
		return "", s.fail()
	}
	for i := s.at + 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			text := string(s.b[s.at+1 : i])
			s.at = i + 1
			return text, nil
		case c < ' ':
			return "", s.fail()
		case c == '\\':
			return s.escaped()
		}
	}
	return "", s.fail()
}

// escaped reads a string with escapes.
func (s *scanner) escaped() (string, error) {
	for i := s.at + 1; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			i++
		case '"':
			var text string
			if err := json.Unmarshal(s.b[s.at:i+1], &text); err != nil {
				return "", err
			}
			s.at = i + 1
			return text, nil
		}
	}
	return "", s.fail()
}

// number reads a number from 0 to 2^63-1.
func (s *scanner) number() (int64, error) {
	s.next()
	begin := s.at
	for s.at < len(s.b) && s.b[s.at] >= '0' && s.b[s.at] <= '9' {
		s.at++
	}
	digits := s.b[begin:s.at]
	end := byte(0)
	if s.at < len(s.b) {
		end = s.b[s.at]
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' || end == '.' || end == 'e' || end == 'E' {
		return 0, s.fail()
	}
	return n, nil
}

// numbers reads a list of numbers.
func (s *scanner) numbers() ([]int64, error) {
	list := []int64{}
	err := s.each('[', ']', func() error {
		n, err := s.number()
		list = append(list, n)
		return err
	})
	return list, err
}

// scanHeader reads a header, or fails: then parseHeader says why, or reads it.
func scanHeader(text []byte) (tensors []tensor, metadata map[string]string, err error) {
	s := &scanner{b: text}
	seen := make(map[string]bool)
	err = s.members(func(key string) error {
		if seen[key] {
			return s.fail()
		}
		seen[key] = true
		if key == metadataKey {
			return s.metadata(&metadata)
		}
		t, err := s.tensor(key)
		tensors = append(tensors, t)
		return err
	})
	if err == nil && (s.next() != 0 || s.at < len(s.b)) {
		err = s.fail()
	}
	return tensors, metadata, err
}

// metadata reads texts about the tensors.
func (s *scanner) metadata(to *map[string]string) error {
	*to = make(map[string]string)
	return s.members(func(key string) error {
		text, err := s.text()
		(*to)[key] = text
		return err
	})
}

// tensor reads an entry of the header.
func (s *scanner) tensor(name string) (tensor, error) {
	t := tensor{name: name}
	var dtype string
	var offsets []int64
	err := s.members(func(key string) (err error) {
		switch {
		case key == "dtype" && dtype == "":
			dtype, err = s.text()
		case key == "shape" && t.shape == nil:
			t.shape, err = s.numbers()
		case key == "data_offsets" && offsets == nil:
			offsets, err = s.numbers()
		default:
			return s.fail()
		}
		return err
	})
	if err != nil {
		return tensor{}, err
	}
	if dtype == "" || t.shape == nil || len(offsets) != 2 {
		return tensor{}, s.fail()
	}
	var ok bool
	if t.dtype, ok = byName(dtype); !ok {
		return tensor{}, s.fail()
	}
	t.begin, t.end = offsets[0], offsets[1]
	return t, t.check()
}
