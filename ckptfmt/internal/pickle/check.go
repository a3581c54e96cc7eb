package pickle

import (
	"hash/maphash"

	"github.com/trainerd/trainerd/ckptfmt/internal/radix"
)

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

// hasTwice reports whether a list of texts has one more than once.
func hasTwice(keys []any) bool {
	const place = 1<<32 - 1
	seed := maphash.MakeSeed()
	list := make([]uint64, len(keys)) // half of a hash, and the place of the key
	for i, key := range keys {
		list[i] = maphash.String(seed, key.(string))&^place | uint64(i)
	}
	radix.Sort(list, func(x *uint64) uint64 { return *x >> 32 })
	for i := range list {
		for j := i + 1; j < len(list) && list[j]>>32 == list[i]>>32; j++ {
			if keys[list[i]&place] == keys[list[j]&place] {
				return true
			}
		}
	}
	return false
}
