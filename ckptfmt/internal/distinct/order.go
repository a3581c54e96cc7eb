package distinct

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/trainerd/trainerd/ckptfmt/internal/radix"
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

// place is that of a name, with the few bytes after what all names begin with: most
// comparisons need no more, and no look at the names.
type place struct {
	key uint64
	at  int32
}

// order sorts the two halves of the places at the same time, and merges them. The goroutine
// for one of them has ended when it returns.
func order(names []string) []int32 {
	skip := len(prefixOf(names))
	compare := func(a, b place) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Or(strings.Compare(names[a.at][skip:], names[b.at][skip:]), cmp.Compare(a.at, b.at))
	}
	places := make([]place, len(names))
	sort := func(from, to int) {
		for i := from; i < to; i++ {
			var key [8]byte
			copy(key[:], names[i][skip:])
			places[i] = place{binary.BigEndian.Uint64(key[:]), int32(i)}
		}
		radix.Sort(places[from:to], func(p *place) uint64 { return p.key })
		for begin := from; begin < to; {
			end := begin + 1
			for end < to && places[end].key == places[begin].key {
				end++
			}
			slices.SortFunc(places[begin:end], compare)
			begin = end
		}
	}
	half := len(places) / 2
	var apart sync.WaitGroup
	apart.Go(func() { sort(0, half) })
	sort(half, len(places))
	apart.Wait()
	return merged(places[:half], places[half:], compare)
}

// merged returns where the names of two sorted lists are, in the order of both.
func merged(a, b []place, compare func(a, b place) int) []int32 {
	places := make([]int32, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		next := &a
		if compare(a[0], b[0]) > 0 {
			next = &b
		}
		places = append(places, (*next)[0].at)
		*next = (*next)[1:]
	}
	for _, rest := range [2][]place{a, b} { // one of them is empty
		for _, p := range rest {
			places = append(places, p.at)
		}
	}
	return places
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
