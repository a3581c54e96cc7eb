package pickle

import "fmt"

// A value that the memo has takes two bytes of the pickle for each time that it is used, however
// large it is. So what a use costs is counted as memory that the pickle asks for.

// maxNested is how deep in the tuple of a call's arguments is what it may copy: the texts of pairs
// in a list.
const maxNested = 3

// spendOn counts what a call is made with, and what is in that.
func (u *unpickler) spendOn(values []any, nested int) error {
	for _, a := range values {
		var size int
		var items []any
		switch a := a.(type) {
		case string:
			size = len(a)
		case Bytes:
			size = len(a)
		case Tuple:
			size, items = itemSize*len(a), a
		case *List:
			size, items = keySize*len(a.Items), a.Items // of a dict, if that is made of it
		}
		if err := u.spend(size); err != nil {
			return err
		}
		if nested > 0 {
			if err := u.spendOn(items, nested-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keys of dicts are hashed, and compared, each time that they are used. Longer ones than this count,
// and long tuples are not looked up.
const longKey = 1024

// spendOnKeys counts the keys among the keys and values that a dict gets.
func (u *unpickler) spendOnKeys(items []any) error {
	for i := 0; i < len(items); i += 2 {
		if n := keyBytes(items[i]); n > longKey {
			if err := u.spend(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func keyBytes(key any) int {
	switch key := key.(type) {
	case string:
		return len(key)
	case Bytes:
		return len(key)
	case Tuple:
		return itemSize * len(key)
	}
	return 0
}

// otherKey is what a tuple is found by that no other key is equal to.
type otherKey struct{ _ byte }

// keyOfTuple returns what a tuple is found by as a key: few texts and numbers, or nothing. A program
// has no tuple twice in a dict, and in a tuple of other things any may be equal to another.
func keyOfTuple(key Tuple) any {
	size := itemSize * len(key)
	for _, v := range key {
		switch v := v.(type) {
		case string:
			size += len(v)
		case nil, bool, int64, float64:
		default:
			return new(otherKey)
		}
		if size > longKey {
			return new(otherKey)
		}
	}
	return tupleKey(fmt.Sprintf("%#v", []any(key)))
}
