package pickle

import (
	"fmt"
	"hash/maphash"
	"math/big"
	"slices"
	"strings"
)

// Values that a pickle makes, in addition to nil, bool, int64, float64 and string.
type (
	// Global is "module.name", which is never looked up.
	Global string
	// Bytes are bytes.
	Bytes string
	// Tuple is a tuple.
	Tuple []any
	// List is a list, or a set.
	List struct{ Items []any }
	// Dict is a dict, in the order in which it was filled. Its keys are strings,
	// numbers, objects, and tuples. One of other things than few strings and numbers is always
	// a key of its own.
	Dict struct {
		Keys   []any
		Values []any
		index  []uint64 // of keys by their hashes; nil of few keys, and of texts in ascending order
		seed   maphash.Seed

		ascending int  // how many of the first keys are texts in ascending order
		unchecked bool // very many keys, and some may be there twice
		checked   bool // it was so, and has been looked through
	}
	// Object is an object of a class that Rules allow, with what it was made of, what it was
	// saved with, and the items that it got as a dict or list has them.
	Object struct {
		Class Global
		Args  Tuple
		State any
		Items any // a *Dict, a *List or nil
	}
	mark struct{}
)

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{} }

// tupleKey represents a tuple among the keys of a dict.
type tupleKey string

// keyOf returns what a key is found by.
func keyOf(key any) (any, error) {
	switch key := key.(type) {
	case nil, bool, string, int64, float64, *big.Int, Bytes, Global, *Object:
		return key, nil
	case Tuple:
		return keyOfTuple(key), nil
	}
	return nil, fmt.Errorf("a dict has a key that no dict can have")
}

// isKey reports whether a key is the one that is found by k.
func isKey(key, k any) bool {
	if text, ok := k.(string); ok {
		have, isText := key.(string)
		return isText && have == text
	}
	found, err := keyOf(key)
	return err == nil && found == k
}

// fewKeys are found without an index.
const fewKeys = 8

// find returns the place of the key that is found by k, -1 where there is none, and of
// an index the slot that has it, or would. A slot has 32 bits of the hash, and the place
// plus 1 below them.
func (d *Dict) find(k any, hash uint32) (place int, slot *uint64) {
	if d.index == nil && len(d.Keys) > fewKeys {
		return d.findText(k), nil
	}
	if d.index == nil {
		return slices.IndexFunc(d.Keys, func(key any) bool { return isKey(key, k) }), nil
	}
	last := uint32(len(d.index) - 1)
	for h := hash; ; h++ {
		slot = &d.index[h&last]
		if *slot == 0 {
			return -1, slot
		}
		if place = int(uint32(*slot)) - 1; uint32(*slot>>32) == hash && isKey(d.Keys[place], k) {
			return place, slot
		}
	}
}

// findText is find of many texts in ascending order.
func (d *Dict) findText(k any) int {
	text, ok := k.(string)
	if !ok {
		return -1
	}
	i, ok := slices.BinarySearchFunc(d.Keys, text, func(key any, text string) int { return strings.Compare(key.(string), text) })
	if !ok {
		return -1
	}
	return i
}

// hash is 0 where there is no index.
func (d *Dict) hash(k any) uint32 {
	if d.index == nil {
		return 0
	}
	if text, ok := k.(string); ok {
		return uint32(maphash.String(d.seed, text))
	}
	return uint32(maphash.Comparable(d.seed, k))
}

// follows reports whether a key is a text that comes after all keys, which are texts in
// ascending order: then it needs no index, as those of files in the order of their names.
func (d *Dict) follows(key any) bool {
	text, ok := key.(string)
	if !ok || d.index != nil || d.ascending < len(d.Keys) {
		return false
	}
	return len(d.Keys) == 0 || d.Keys[len(d.Keys)-1].(string) < text
}

// Set has Python's meaning: the last value of a key stays.
func (d *Dict) Set(key, value any) error {
	if d.unchecked {
		if err := d.check(); err != nil {
			return err
		}
	}
	if d.follows(key) {
		d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
		d.ascending++
		return nil
	}
	k, err := keyOf(key)
	if err != nil {
		return err
	}
	d.grow(1)
	hash := d.hash(k)
	place, slot := d.find(k, hash)
	if place >= 0 {
		d.Values[place] = value
		return nil
	}
	d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
	if slot != nil {
		*slot = uint64(hash)<<32 | uint64(len(d.Keys))
	}
	return nil
}

// grow makes room for n more keys.
func (d *Dict) grow(n int) {
	want := len(d.Keys) + n
	if want <= fewKeys || 4*want <= 3*len(d.index) {
		return
	}
	size := 2 * fewKeys
	for 3*size < 4*want {
		size *= 2
	}
	old := d.index
	d.index = make([]uint64, size)
	if old == nil {
		d.seed = maphash.MakeSeed()
		for i, key := range d.Keys {
			k, _ := keyOf(key) // which was not an error when it was set
			hash := d.hash(k)
			*d.free(hash) = uint64(hash)<<32 | uint64(i+1)
		}
	}
	for _, slot := range old {
		if slot != 0 {
			*d.free(uint32(slot >> 32)) = slot
		}
	}
}

// free returns a slot for a key that is not in the index.
func (d *Dict) free(hash uint32) *uint64 {
	last := uint32(len(d.index) - 1)
	for h := hash; ; h++ {
		if slot := &d.index[h&last]; *slot == 0 {
			return slot
		}
	}
}

// Get returns the value of a key, nil where there is none.
func (d *Dict) Get(key any) any {
	k, err := keyOf(key)
	if err != nil || d.unchecked && d.check() != nil {
		return nil
	}
	if d.ascending < len(d.Keys) {
		d.grow(0)
	}
	if i, _ := d.find(k, d.hash(k)); i >= 0 {
		return d.Values[i]
	}
	return nil
}

func (d *Dict) setAll(items []any, expected int) error {
	if d.defers(items) {
		d.Keys, d.Values = roomFor(len(items)/2, d.Keys, expected), roomFor(len(items)/2, d.Values, expected)
		for i := 0; i < len(items); i += 2 {
			d.Keys, d.Values = append(d.Keys, items[i]), append(d.Values, items[i+1])
		}
		return nil
	}
	if d.index != nil {
		d.grow(len(items) / 2)
	}
	d.Keys, d.Values = roomFor(len(items)/2, d.Keys, expected), roomFor(len(items)/2, d.Values, expected)
	for i := 0; i < len(items); i += 2 {
		if err := d.Set(items[i], items[i+1]); err != nil {
			return err
		}
	}
	return nil
}
