// Package radix sorts a hundred thousand items by integer keys, in a fraction of the time that a
// sort by comparisons takes.
package radix

import (
	"cmp"
	"slices"
)

const (
	digit  = 11 // bits
	digits = (64 + digit - 1) / digit
	few    = 256
)

// Sort sorts a list by the keys of its elements. Those of one key stay in their order.
func Sort[T any](list []T, key func(x *T) uint64) {
	if len(list) < few {
		slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(&a), key(&b)) })
		return
	}
	var differ uint64 // the bits in which keys do
	var counts [digits][1 << digit]int32
	first := key(&list[0])
	for i := range list {
		k := key(&list[i])
		differ |= k ^ first
		for d := range counts {
			counts[d][k>>(d*digit)&(1<<digit-1)]++
		}
	}
	from, to := list, make([]T, len(list))
	for d := range counts {
		if differ>>(d*digit)&(1<<digit-1) == 0 {
			continue
		}
		begins, sum := &counts[d], int32(0)
		for i, n := range begins {
			begins[i], sum = sum, sum+n
		}
		for i := range from {
			at := &begins[key(&from[i])>>(d*digit)&(1<<digit-1)]
			to[*at] = from[i]
			*at++
		}
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
}
