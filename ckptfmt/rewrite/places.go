package rewrite

import (
	"iter"

	"github.com/trainerd/trainerd/ckptfmt"
)

// placesByName are places in a list of parts by the names of the tensors. Of very many
// tensors few have more than one.
type placesByName struct {
	first map[string]int32
	next  map[int32]int32 // the place of the next part of the same tensor
}

func newPlaces(parts []ckptfmt.Part) *placesByName {
	p := &placesByName{first: make(map[string]int32, len(parts)), next: make(map[int32]int32)}
	last := make(map[string]int32) // of tensors with several
	for i := range parts {
		name, at := parts[i].Name, int32(i)
		before, ok := last[name]
		if !ok {
			before, ok = p.first[name]
		}
		if !ok {
			p.first[name] = at
			continue
		}
		p.next[before], last[name] = at, at
	}
	return p
}

// index returns the places of the parts by the names of their tensors.
func (s *Source) index() *placesByName {
	if s.byName == nil {
		s.byName = newPlaces(s.parts)
	}
	return s.byName
}

// first returns the first part of a tensor, nil where there is none.
func (s *Source) first(name string) *ckptfmt.Part {
	if i, ok := s.index().first[name]; ok {
		return &s.parts[i]
	}
	return nil
}

// named returns the parts of a tensor.
func (s *Source) named(name string) iter.Seq[*ckptfmt.Part] {
	return func(yield func(*ckptfmt.Part) bool) {
		i, ok := s.index().first[name]
		for ; ok && yield(&s.parts[i]); i, ok = s.byName.next[i] {
		}
	}
}
