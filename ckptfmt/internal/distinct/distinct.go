// Package distinct finds names that occur twice in a list. A map of a hundred thousand names would
// take longer than reading all the rest of their file.
package distinct

import "hash/maphash"

// Names are the names of a list so far. As long as each is greater than the one
// before, as in the files of most programs, no other check is needed; from the first
// that is not, a table has their places by their hashes.
type Names struct {
	name  func(i int) string
	n     int
	last  string
	slots []uint32 // place + 1, 0 where there is none; nil while the names ascend
	seed  maphash.Seed
}

// New returns the names of an empty list. Those that are added must be at name(0),
// name(1) and so on when the next is.
func New(name func(i int) string) *Names { return &Names{name: name} }

// Add takes the next name of the list, and reports whether it is a new one; if not, it
// is not added.
func (s *Names) Add(name string) bool {
	if s.slots == nil && (s.n == 0 || name > s.last) {
		s.last = name
		s.n++
		return true
	}
	if 2*s.n >= len(s.slots) {
		s.rehash()
	}
	slot := s.find(name)
	if *slot != 0 {
		return false
	}
	s.n++
	*slot = uint32(s.n)
	return true
}

// rehash makes a table with room for more.
func (s *Names) rehash() {
	const least = 64
	size := least
	for size < 4*s.n {
		size *= 2
	}
	s.seed = maphash.MakeSeed()
	s.slots = make([]uint32, size)
	for i := range s.n {
		*s.find(s.name(i)) = uint32(i + 1)
	}
}

// find returns the slot of a name, or the free one where it would be. The table is
// never full.
func (s *Names) find(name string) *uint32 {
	last := uint64(len(s.slots) - 1)
	for h := maphash.String(s.seed, name); ; h++ {
		slot := &s.slots[h&last]
		if *slot == 0 || s.name(int(*slot-1)) == name {
			return slot
		}
	}
}
