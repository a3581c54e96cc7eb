package vec

import "unsafe"

// And sets d to whether both x and y are set, eight booleans, which are bytes of 0 and 1, at a
// time.
func And(d, x, y []bool) {
	x, y = x[:len(d)], y[:len(d)]
	words := 0
	if a, b, c := octets(d), octets(x), octets(y); len(a) == len(b) && len(b) == len(c) {
		words = len(a)
		for i, v := range b {
			a[i] = v & c[i]
		}
	}
	for i := 8 * words; i < len(d); i++ {
		d[i] = x[i] && y[i]
	}
}

// Or sets d to whether x or y is set.
func Or(d, x, y []bool) {
	x, y = x[:len(d)], y[:len(d)]
	words := 0
	if a, b, c := octets(d), octets(x), octets(y); len(a) == len(b) && len(b) == len(c) {
		words = len(a)
		for i, v := range b {
			a[i] = v | c[i]
		}
	}
	for i := 8 * words; i < len(d); i++ {
		d[i] = x[i] || y[i]
	}
}

// octets returns booleans as words of eight, as far as they fill them: none if the first one is
// where no word can be.
func octets(s []bool) []uint64 {
	p := unsafe.Pointer(unsafe.SliceData(s))
	if uintptr(p)%8 != 0 {
		return nil
	}
	return unsafe.Slice((*uint64)(p), len(s)/8)
}
