package pickle

import (
	"fmt"
	"math/big"
	"slices"
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
	// numbers, objects, and tuples of strings and numbers.
	Dict struct {
		Keys   []any
		Values []any
		texts  map[string]int // places of keys that are strings
		others map[any]int    // and of all others
	}
	// Object is an object of a class that Rules allow, with what it was made of and
	// what it was saved with.
	Object struct {
		Class Global
		Args  Tuple
		State any
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
		for _, v := range key {
			switch v.(type) {
			case nil, bool, string, int64, float64:
			default:
				return nil, fmt.Errorf("a dict has a tuple with other things than texts and numbers for a key")
			}
		}
		return tupleKey(fmt.Sprintf("%#v", []any(key))), nil
	}
	return nil, fmt.Errorf("a dict has a key that no dict can have")
}

// find returns the place of a key.
func (d *Dict) find(key any) (place int, ok bool, err error) {
	if text, isText := key.(string); isText {
		place, ok = d.texts[text]
		return place, ok, nil
	}
	k, err := keyOf(key)
	if err == nil {
		place, ok = d.others[k]
	}
	return place, ok, err
}

// Set has Python's meaning: the last value of a key stays.
func (d *Dict) Set(key, value any) error {
	i, ok, err := d.find(key)
	if err != nil {
		return err
	}
	if ok {
		d.Values[i] = value
		return nil
	}
	if err := d.place(key); err != nil {
		return err
	}
	d.Keys, d.Values = append(d.Keys, key), append(d.Values, value)
	return nil
}

// place notes that the next key is key. Most dicts next to tensors are empty, so that
// the maps are made when they are needed.
func (d *Dict) place(key any) error {
	if text, isText := key.(string); isText {
		if d.texts == nil {
			d.texts = make(map[string]int)
		}
		d.texts[text] = len(d.Keys)
		return nil
	}
	k, err := keyOf(key)
	if err != nil {
		return err
	}
	if d.others == nil {
		d.others = make(map[any]int)
	}
	d.others[k] = len(d.Keys)
	return nil
}

// Get returns the value of a key, nil where there is none.
func (d *Dict) Get(key any) any {
	i, ok, err := d.find(key)
	if err != nil || !ok {
		return nil
	}
	return d.Values[i]
}

func (d *Dict) setAll(items []any) error {
	if d.texts == nil && len(items) > 0 {
		d.texts = make(map[string]int, len(items)/2)
	}
	d.Keys, d.Values = slices.Grow(d.Keys, len(items)/2), slices.Grow(d.Values, len(items)/2)
	for i := 0; i < len(items); i += 2 {
		if err := d.Set(items[i], items[i+1]); err != nil {
			return err
		}
	}
	return nil
}
