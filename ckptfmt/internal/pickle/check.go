package pickle

import "hash/maphash"

// A dict of very many texts, as that of a model is, gets them without a look for each: a
// table of a hundred thousand takes a tenth of the time in which a file is read. When all
// are there they are looked through at once.

// defers reports whether a dict gets items that way, and notes it. Those in ascending order
// need no look at all.
func (d *Dict) defers(items []any) bool {
	if d.checked || len(d.Keys) < longList || !d.unchecked && d.ascending == len(d.Keys) {
		return false
	}
	if !d.unchecked && !areTexts(d.Keys, 1) || !areTexts(items, 2) {
		return false
	}
	d.unchecked, d.index = true, nil
	return true
}

// areTexts reports whether each step-th value is a text.
func areTexts(list []any, step int) bool {
	for i := 0; i < len(list); i += step {
		if _, ok := list[i].(string); !ok {
			return false
		}
	}
	return true
}

// check makes a dict one that has each key once.
func (d *Dict) check() error {
	d.unchecked, d.checked = false, true
	if !hasTwice(d.Keys) {
		return nil
	}
	keys, values := d.Keys, d.Values
	d.Keys, d.Values, d.ascending = nil, nil, 0
	for i := range keys {
		if err := d.Set(keys[i], values[i]); err != nil {
			return err
		}
	}
	return nil
}

// hasTwice reports whether a list of texts has one more than once. It may be wrong about a list
// in which two have the same hash, which check then looks through for nothing.
func hasTwice(keys []any) bool {
	size := 1
	for size < 2*len(keys) {
		size *= 2
	}
	seed, last := maphash.MakeSeed(), uint64(size-1)
	halves := make([]uint32, size) // of hashes, by the other halves; 0 where there is none
	for _, key := range keys {
		hash := maphash.String(seed, key.(string))
		half, at := uint32(hash>>32)|1, hash&last
		for ; halves[at] != 0; at = (at + 1) & last {
			if halves[at] == half {
				return true
			}
		}
		halves[at] = half
	}
	return false
}
