package safetensors

import (
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
)

// scanner reads the JSON of a header in one pass: models have up to a hundred
// thousand tensors, and encoding/json takes most of a second for these. What it
// accepts means the same to that; what it does not, that reads again. After the first
// thing that it does not accept it is bad, and all that it returns is empty.
type scanner struct {
	text   string // names are parts of it
	at     int
	bad    bool
	shapes []int64 // memory for the next shapes
	last   *elementType
}

var errScan = errors.New("it is not a header that is read in one pass")

// next skips blanks and returns the next byte, 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.text) && !s.bad {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take insists on a byte.
func (s *scanner) take(c byte) {
	if s.next() != c {
		s.bad = true
		return
	}
	s.at++
}

// element reports whether a list or an object, with n elements read so far, has
// another one; it takes the end if not.
func (s *scanner) element(end byte, n int) bool {
	switch c := s.next(); {
	case c == end:
		s.at++
		return false
	case n == 0 && c != 0:
		return true
	case c == ',':
		s.at++
		return true
	}
	s.bad = true
	return false
}

// key reads the name of a member of an object.
func (s *scanner) key() string {
	key := s.string()
	s.take(':')
	return key
}

// string reads a string. The header is UTF-8; an escape that makes half of a
// surrogate pair becomes U+FFFD, as in encoding/json.
func (s *scanner) string() string {
	s.take('"')
	begin := s.at
	for i := begin; i < len(s.text) && !s.bad; i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return s.text[begin:i]
		case c < ' ':
			s.bad = true
		case c == '\\':
			return s.escaped(begin - 1)
		}
	}
	s.bad = true
	return ""
}

// escaped reads a string with escapes.
func (s *scanner) escaped(begin int) string {
	for i := begin + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			var text string
			if json.Unmarshal([]byte(s.text[begin:i+1]), &text) != nil {
				s.bad = true
				return ""
			}
			s.at = i + 1
			return text
		}
	}
	s.bad = true
	return ""
}

// number reads a number from 0 to 2^63-1.
func (s *scanner) number() int64 {
	const most = math.MaxInt64
	s.next()
	n, begin := int64(0), s.at
	for ; s.at < len(s.text); s.at++ {
		digit := int64(s.text[s.at]) - '0'
		if digit < 0 || digit > 9 {
			break
		}
		if n > (most-digit)/10 {
			s.bad = true
			return 0
		}
		n = 10*n + digit
	}
	digits := s.at - begin
	end := byte(0)
	if s.at < len(s.text) {
		end = s.text[s.at]
	}
	if digits == 0 || digits > 1 && s.text[begin] == '0' || end == '.' || end == 'e' || end == 'E' {
		s.bad = true
		return 0
	}
	return n
}

// shapesAtOnce is how many dimensions get their memory together.
const shapesAtOnce = 1024

// shape reads a list of numbers.
func (s *scanner) shape() []int64 {
	if cap(s.shapes)-len(s.shapes) < 8 {
		s.shapes = make([]int64, 0, shapesAtOnce)
	}
	list := s.shapes[len(s.shapes):]
	s.take('[')
	for n := 0; s.element(']', n); n++ {
		if n == maxRank {
			s.bad = true
			return nil
		}
		list = append(list, s.number())
	}
	if len(list) <= cap(s.shapes)-len(s.shapes) {
		s.shapes = s.shapes[:len(s.shapes)+len(list)]
	}
	return list[:len(list):len(list)]
}

// offsets reads where a tensor begins and ends.
func (s *scanner) offsets() (begin, end int64) {
	s.take('[')
	begin = s.number()
	s.take(',')
	end = s.number()
	s.take(']')
	return begin, end
}

// leastEntry is fewer bytes than an entry of the header has.
const leastEntry = len(`"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}`)

// entriesIn guesses how many entries a header has by those at its beginning.
func entriesIn(text string) int {
	const sample = 64 << 10
	n := strings.Count(text[:min(len(text), sample)], `"data_offsets"`)
	if len(text) > sample {
		n = int(float64(n) * 1.05 * float64(len(text)) / sample)
	}
	return min(n, len(text)/leastEntry)
}

// scanHeader reads a header, or fails: then parseHeader says why, or reads it.
func scanHeader(text string) (tensors []tensor, metadata map[string]string, err error) {
	s := &scanner{text: text}
	tensors = make([]tensor, 0, entriesIn(text))
	names := distinct.New(func(i int) string { return tensors[i].name })
	s.take('{')
	for n := 0; s.element('}', n); n++ {
		key := s.key()
		if key == metadataKey && metadata == nil {
			metadata = s.metadata()
			continue
		}
		if s.bad || key == metadataKey || !names.Add(key) {
			return nil, nil, errScan
		}
		t, err := s.tensor(key)
		if err != nil {
			return nil, nil, err
		}
		tensors = append(tensors, t)
	}
	if s.next() != 0 || s.bad || s.at < len(s.text) {
		return nil, nil, errScan
	}
	if len(tensors) == 0 {
		tensors = nil
	}
	return tensors, metadata, nil
}

// metadata reads texts about the tensors.
func (s *scanner) metadata() map[string]string {
	to := make(map[string]string)
	s.take('{')
	for n := 0; s.element('}', n); n++ {
		key := s.key()
		to[key] = s.string()
	}
	return to
}

// skip reports whether a text comes next, and takes it.
func (s *scanner) skip(text string) bool {
	if !strings.HasPrefix(s.text[s.at:], text) {
		return false
	}
	s.at += len(text)
	return true
}

// usual reads an entry in the form that the library writes. What has another form it
// leaves to be read member by member.
func (s *scanner) usual(t *tensor) bool {
	begin := s.at
	ok := s.skip(`{"dtype":"`) && s.typeName(t) && s.skip(`","shape":`)
	if ok {
		t.shape = s.shape()
		ok = s.skip(`,"data_offsets":`)
	}
	if ok {
		t.begin, t.end = s.offsets()
		ok = s.skip("}") && !s.bad
	}
	if !ok {
		*t, s.at, s.bad = tensor{name: t.name}, begin, false
	}
	return ok
}

// typeOf is the function of that name, which most tensors do not need: they have the
// type of the one before.
func (s *scanner) typeOf(name string) *elementType {
	if s.last == nil || s.last.name != name {
		s.last = typeOf(name)
	}
	return s.last
}

// typeName reads the name of a type, up to the quote after it.
func (s *scanner) typeName(t *tensor) bool {
	rest := s.text[s.at:]
	n := strings.IndexByte(rest[:min(len(rest), longestType+1)], '"')
	if n < 0 {
		return false
	}
	t.of = s.typeOf(rest[:n])
	s.at += n
	return t.of != nil
}

// tensor reads an entry of the header.
func (s *scanner) tensor(name string) (tensor, error) {
	t := tensor{name: name}
	if s.usual(&t) {
		return t, t.check()
	}
	var dtype string
	hasOffsets := false
	s.take('{')
	for n := 0; s.element('}', n); n++ {
		switch key := s.key(); {
		case key == "dtype" && dtype == "":
			dtype = s.string()
		case key == "shape" && t.shape == nil:
			t.shape = s.shape()
		case key == "data_offsets" && !hasOffsets:
			hasOffsets = true
			t.begin, t.end = s.offsets()
		default:
			return tensor{}, errScan
		}
	}
	if s.bad || dtype == "" || t.shape == nil || !hasOffsets {
		return tensor{}, errScan
	}
	if t.of = s.typeOf(dtype); t.of == nil {
		return tensor{}, errScan
	}
	return t, t.check()
}
