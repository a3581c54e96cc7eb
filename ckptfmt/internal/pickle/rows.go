package pickle

import "unicode/utf8"

// item is an item of a dict whose value is made by a call like an earlier one. It follows the
// call of the item before it:
//
//	r place | X length | name | r place | h place of the callee | ( ... R
//
// torch notes in the memo what the call before it has made, and the name; others need not.
type item struct {
	name, own    string
	call         *alike
	noted, named bool // the value before it, and the name, are noted
	size         int  // before the call
}

// rowsKept is how many items of a row the memo keeps. Few have names or values that are
// fetched: words that dicts of an optimizer share, which are short, and tied weights.
const rowsKept = 64

// rows pushes what a call has made, and does the items after it whose calls are like
// earlier ones: nearly all that a state dict has.
func (u *unpickler) rows(callee Global, v any) error {
	for n := 0; ; n++ {
		if err := u.push(v); err != nil {
			return err
		}
		x, ok := u.item(callee)
		if !ok {
			return nil
		}
		name := any(u.kept(x.name))
		if err := u.note(v, x.noted, n); err != nil {
			return err
		}
		if err := u.note(name, x.named, n); err != nil {
			return err
		}
		u.at += x.size
		v = u.alikes.do(x.call, x.own, u)
		if err := u.push(name); err != nil {
			return err
		}
	}
}

// note puts a value of item n of a row into the memo, if the pickle does.
func (u *unpickler) note(v any, does bool, n int) error {
	switch {
	case !does:
		return nil
	case n < u.rowsKept || u.memo.next < earlyPlaces:
		u.memo.put(v)
	default:
		u.memo.skip(1)
		u.leftOut = true
	}
	return u.spend(memoSize)
}

// item returns the next item, if it is as rows expects it.
func (u *unpickler) item(callee Global) (x item, ok bool) {
	b, place := u.b[u.at:], u.memo.next
	if len(u.alikes.list) == 0 || len(u.memo.rest) > 0 {
		return x, false
	}
	b, x.noted = withoutPut(b, place)
	if x.noted {
		place++
	}
	const head = 5
	if len(b) < head || b[0] != 'X' {
		return x, false
	}
	n := int(u32(b[1:]))
	if b = b[head:]; n < 0 || len(b) < n || !utf8.ValidString(b[:n]) {
		return x, false
	}
	x.name = b[:n]
	if b, x.named = withoutPut(b[n:], place); x.named {
		place++
	}
	if len(b) < 2 || b[0] != 'h' || int(b[1]) >= len(u.memo.early) || u.memo.early[b[1]] != any(callee) {
		return x, false
	}
	b = b[2:]
	x.size = len(u.b) - u.at - len(b)
	x.call, x.own = u.alikes.find(b, place, callee)
	return x, x.call != nil
}

// withoutPut returns what comes after the opcode that notes a value in the next place, if
// there is one.
func withoutPut(b string, place int) (rest string, is bool) {
	if len(b) > placeSize && b[0] == 'r' && u32(b[1:]) == uint32(place) {
		return b[1+placeSize:], true
	}
	return b, false
}
