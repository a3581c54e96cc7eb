package safetensors

import (
	"bytes"
	"cmp"
	"errors"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/internal/distinct"
	"github.com/trainerd/trainerd/ckptfmt/internal/jsonscan"
	"github.com/trainerd/trainerd/ckptfmt/internal/slab"
)

// scanner reads the JSON of a header in one pass: models have up to a hundred thousand tensors, and
// encoding/json takes most of a second for these. Whatever it accepts, encoding/json decodes to the
// same values; anything else is read again by encoding/json. After the first thing that it does not
// accept it is bad, and returns only empty values.
type scanner struct {
	jsonscan.Scanner
	shapes []int64 // memory for the next
	last   *elementType

	stop    int // where entries are for another one
	read    int // entries so far
	ended   bool
	tensors []tensor
	texts   map[string]string
	err     error
}

var errScan = errors.New("it is not a header that is read in one pass")

// shape reads a list of numbers.
func (s *scanner) shape() []int64 {
	var few [8]int64
	list := few[:0]
	s.Take('[')
	for n := 0; s.Element(']', n); n++ {
		if n == maxRank {
			return nil // in the middle of it, which nothing accepts
		}
		list = append(list, s.Number())
	}
	return slab.Copy(&s.shapes, list)
}

// offsets reads where a tensor begins and ends.
func (s *scanner) offsets() (begin, end int64) {
	s.Take('[')
	begin = s.Number()
	s.Take(',')
	end = s.Number()
	s.Take(']')
	return begin, end
}

// leastEntry is fewer bytes than an entry of the header has.
const leastEntry = len(`"":{"dtype":"U8","shape":[],"data_offsets":[0,1]}`)

// entriesIn guesses how many entries a header has by those at its beginning.
func entriesIn(text []byte) int {
	const sample = 64 << 10
	n := bytes.Count(text[:min(len(text), sample)], []byte(`"data_offsets"`))
	if len(text) > sample {
		n = int(float64(n) * 1.05 * float64(len(text)) / sample)
	}
	return min(n, len(text)/leastEntry)
}

// scanHeader reads a header, or fails: then parseHeader says why, or reads it. Of a large
// one a second goroutine, which has ended when it returns, reads the entries from the
// middle on. Whether it began at an entry is known when the others were read.
func scanHeader(text []byte, guard func(do func() error) error) (tensors []tensor, metadata map[string]string, err error) {
	first, second := newScanner(text, len(text)), newScanner(text, len(text))
	var apart sync.WaitGroup
	defer apart.Wait()
	if at := bytes.Index(text[len(text)/2:], []byte(`},"`)); len(text) >= leastApart && at >= 0 {
		first.stop = len(text)/2 + at + 1
		second.At, second.read = first.stop, 1
		apart.Go(func() { second.err = guard(second.entries) })
	}
	first.tensors = make([]tensor, 0, entriesIn(text))
	first.Take('{')
	first.err = first.entries()
	switch isBorder := first.At == first.stop && !first.ended; {
	case first.err != nil:
		return nil, nil, first.err
	case isBorder:
		apart.Wait()
		return join(first, second)
	}
	first.stop = len(text)
	if err := first.entries(); err != nil || !first.ended || !first.AtEnd() {
		return nil, nil, cmp.Or(err, errScan)
	}
	return first.all()
}

// leastApart is the size of a header from which two goroutines read it.
const leastApart = 1 << 20

func newScanner(text []byte, stop int) *scanner {
	return &scanner{Scanner: jsonscan.Scanner{Text: text}, stop: stop}
}

// entries reads entries up to the end of the header, or to where it has to stop, which may be
// within an entry. If it is bad, it has stopped before the end of the text.
func (s *scanner) entries() error {
	if s.tensors == nil {
		s.tensors = make([]tensor, 0, entriesIn(s.Text[s.At:s.stop]))
	}
	for s.At < s.stop && !s.ended {
		if s.ended = !s.Element('}', s.read); s.ended {
			break
		}
		s.read++
		key := s.Key()
		if key == metadataKey && s.texts == nil {
			s.texts = s.metadata()
			continue
		}
		if s.Bad || key == metadataKey {
			return errScan
		}
		t, err := s.tensor(key)
		if err != nil {
			return err
		}
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// join returns what two goroutines have read.
func join(first, second *scanner) ([]tensor, map[string]string, error) {
	switch {
	case second.err != nil:
		return nil, nil, second.err
	case !second.ended, !second.AtEnd(), first.texts != nil && second.texts != nil:
		return nil, nil, errScan
	case first.texts == nil:
		first.texts = second.texts
	}
	first.tensors = append(first.tensors, second.tensors...)
	return first.all()
}

// all returns what was read, unless two tensors have the same name.
func (s *scanner) all() ([]tensor, map[string]string, error) {
	names := distinct.New(func(i int) string { return s.tensors[i].name })
	for i := range s.tensors {
		if !names.Add(s.tensors[i].name) {
			return nil, nil, errScan
		}
	}
	if len(s.tensors) == 0 {
		return nil, s.texts, nil
	}
	return s.tensors, s.texts, nil
}

// metadata reads texts about the tensors.
func (s *scanner) metadata() map[string]string {
	to := make(map[string]string)
	s.Take('{')
	for n := 0; s.Element('}', n); n++ {
		key := s.Key()
		to[key] = s.Quoted()
	}
	return to
}

// usual reads an entry in the form that the library writes. An entry in another form is left to be
// read member by member.
func (s *scanner) usual(t *tensor) bool {
	begin := s.At
	ok := s.Skip(`{"dtype":"`) && s.typeName(t) && s.Skip(`","shape":`)
	if ok {
		t.shape = s.shape()
		ok = s.Skip(`,"data_offsets":`)
	}
	if ok {
		t.begin, t.end = s.offsets()
		ok = s.Skip("}") && !s.Bad
	}
	if !ok {
		*t, s.At, s.Bad = tensor{name: t.name}, begin, false
	}
	return ok
}

// typeOf is the function of that name, which most tensors do not need: they have the
// type of the one before.
func (s *scanner) typeOf(name []byte) *elementType {
	if s.last == nil || s.last.name != string(name) {
		s.last = typeOf(string(name))
	}
	return s.last
}

// typeName reads the name of a type, up to the quote after it.
func (s *scanner) typeName(t *tensor) bool {
	name, _, ok := bytes.Cut(s.Text[s.At:min(len(s.Text), s.At+longestType+1)], []byte{'"'})
	t.of = s.typeOf(name)
	s.At += len(name)
	return ok && t.of != nil
}

// tensor reads an entry of the header.
func (s *scanner) tensor(name string) (tensor, error) {
	t := tensor{name: name}
	if s.usual(&t) {
		return t, t.check()
	}
	var dtype []byte
	hasOffsets := false
	s.Take('{')
	for n := 0; s.Element('}', n); n++ {
		switch key := s.Key(); {
		case key == "dtype" && len(dtype) == 0:
			dtype = s.Raw()
		case key == "shape" && t.shape == nil:
			t.shape = s.shape()
		case key == "data_offsets" && !hasOffsets:
			hasOffsets = true
			t.begin, t.end = s.offsets()
		default:
			return tensor{}, errScan
		}
	}
	if t.of = s.typeOf(dtype); s.Bad || t.of == nil || t.shape == nil || !hasOffsets {
		return tensor{}, errScan
	}
	return t, t.check()
}
