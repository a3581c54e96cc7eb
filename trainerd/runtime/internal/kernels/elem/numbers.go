package elem

import (
	"math/bits"
	"math/rand/v2"
)

// Numbers numbers different integers in the order in which they come.
type Numbers struct {
	table  []int32 // by hash, with the next free place for those that meet: 1 + the number, 0 for none
	values []int   // by number
	shift  int
}

// factor is odd, and another one in each process, so that nobody can choose integers
// that all have the same hash.
var factor = rand.Uint64() | 1

// Reset forgets all integers, and makes room for n.
func (t *Numbers) Reset(n int) {
	size := 1 << bits.Len(uint(max(2*n, 16)-1))
	if cap(t.table) < size {
		t.table = make([]int32, size)
	} else {
		t.table = t.table[:size]
		clear(t.table)
	}
	t.shift = 64 - bits.Len(uint(size-1))
	t.values = t.values[:0]
}

// Of returns the number of an integer, and whether it is the first time.
func (t *Numbers) Of(v int) (number int, isNew bool) {
	for h := uint64(v) * factor >> t.shift; ; h = (h + 1) & uint64(len(t.table)-1) {
		switch at := int(t.table[h]) - 1; {
		case at < 0:
			t.values = append(t.values, v)
			t.table[h] = int32(len(t.values))
			return len(t.values) - 1, true
		case t.values[at] == v:
			return at, false
		}
	}
}

// Values returns the integers by their numbers, until the next Reset.
func (t *Numbers) Values() []int { return t.values }
