package distinct

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// Order returns the places of n names in the order of these, nil if they are in it, and
// the place of a name that another one is equal to, -1 where there is none.
func Order(n int, name func(i int) string) (places []int32, twice int) {
	twice, last := -1, ""
	for i := range n {
		next := name(i)
		if next < last {
			return orderOf(n, name)
		}
		if next == last && i > 0 {
			twice = i
		}
		last = next
	}
	return nil, twice
}

func orderOf(n int, name func(i int) string) (places []int32, twice int) {
	names := make([]string, n)
	for i := range names {
		names[i] = name(i)
	}
	places = order(names)
	return places, Twice(n, func(i int) string { return names[i] }, places)
}

// Twice returns the place of a name that another one is equal to, by their order, nil where
// they are in it; -1 where there is none.
func Twice(n int, name func(i int) string, order []int32) int {
	at := func(i int) int {
		if order == nil {
			return i
		}
		return int(order[i])
	}
	for i := 1; i < n; i++ {
		if name(at(i)) == name(at(i-1)) {
			return at(i)
		}
	}
	return -1
}

// order sorts by the few bytes after what all names begin with: most comparisons need
// no more, and no look at the names.
func order(names []string) []int32 {
	type place struct {
		key uint64
		at  int32
	}
	skip := len(prefixOf(names))
	places := make([]place, len(names))
	for i, name := range names {
		var key [8]byte
		copy(key[:], name[skip:])
		places[i] = place{binary.BigEndian.Uint64(key[:]), int32(i)}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Or(strings.Compare(names[a.at][skip:], names[b.at][skip:]), cmp.Compare(a.at, b.at))
	})
	sorted := make([]int32, len(places))
	for i, p := range places {
		sorted[i] = p.at
	}
	return sorted
}

// prefixOf returns what all names begin with.
func prefixOf(names []string) string {
	prefix := names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, prefix) {
			n := 0
			for n < len(name) && n < len(prefix) && name[n] == prefix[n] {
				n++
			}
			prefix = prefix[:n]
		}
	}
	return prefix
}
