package pickle

import (
	"cmp"
	"errors"
	"slices"
)

// memo has the values that a pickle may fetch again, by their places. Python puts every
// text, tuple and object into it, one place after the other, and fetches few. So what a
// [Cursor] reads is not kept in it, but for names and words, nor the items of a long row; the
// pickle that fetches such a value all the same is read again: with all items, then opcode by
// opcode.
type memo struct {
	next  int            // the place after those that were taken one after the other
	early []any          // of the first places, where most of what is fetched is
	late  []memoized     // of the places after them
	rest  map[uint32]any // of places that are out of order

	expected int // values that are kept of a dict: its names, and what is called for each
}

// memoized is a value and its place.
type memoized struct {
	place uint32
	v     any
}

// earlyPlaces is how many of the first places have a list of their own. A value there that
// is not kept is dropped.
const earlyPlaces = 4096

// dropped is what a value that is not kept is replaced by.
type dropped struct{}

// errDropped says that such a value is fetched.
var errDropped = errors.New("a value of a call is fetched")

// put notes a value under the next place.
func (m *memo) put(v any) {
	if m.next < earlyPlaces {
		m.early = append(m.early, v)
	} else if v != any(dropped{}) {
		m.late = append(roomFor(1, m.late, m.expected), memoized{uint32(m.next), v})
	}
	m.next++
	if len(m.rest) > 0 {
		delete(m.rest, uint32(m.next-1))
	}
}

// skip passes n places whose values are not kept, where none is out of order.
func (m *memo) skip(n int) {
	for ; n > 0 && m.next < earlyPlaces; n-- {
		m.put(dropped{})
	}
	m.next += n
}

// set notes a value under any place.
func (m *memo) set(place uint32, v any) error {
	switch at := int(place); {
	case at == m.next:
		m.put(v)
	case at > m.next:
		m.rest[place] = v
	case at < len(m.early):
		m.early[at] = v
	default:
		i, ok := m.find(place)
		if !ok {
			return errDropped
		}
		m.late[i].v = v
	}
	return nil
}

func (m *memo) find(place uint32) (int, bool) {
	return slices.BinarySearchFunc(m.late, place, func(x memoized, place uint32) int { return cmp.Compare(x.place, place) })
}

// fetch returns what is at a place; ok is false where nothing is.
func (m *memo) fetch(place uint32) (v any, ok bool, err error) {
	switch at := int(place); {
	case at < len(m.early):
		v, ok = m.early[at], true
	case at < m.next:
		i, found := m.find(place)
		if !found {
			return nil, false, errDropped
		}
		return m.late[i].v, true, nil
	default:
		v, ok = m.rest[place]
	}
	if v == any(dropped{}) {
		return nil, false, errDropped
	}
	return v, ok, nil
}
