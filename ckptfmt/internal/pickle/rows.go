package pickle

import "unicode/utf8"

// What comes between two calls that make values of a dict:
//
//	r place | X length | name | r place | h place of the callee
const (
	toName   = 2 + placeSize + 4
	fromName = 1 + placeSize + 2
)

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
		name, x, own := u.row(callee)
		if x == nil {
			return nil
		}
		if err := u.spend(2 * memoSize); err != nil {
			return err
		}
		text := any(u.kept(name))
		if n < u.rowsKept || u.memo.next < earlyPlaces {
			u.memo.put(v)
			u.memo.put(text)
		} else {
			u.memo.skip(2)
			u.leftOut = true
		}
		u.at += toName + len(name) + fromName
		v = u.alikes.do(x, own, u)
		if err := u.push(text); err != nil {
			return err
		}
	}
}

// row returns the next item, if it is as rows expects it: its name, the call that its own is
// like, nil if it is like none, and the text of its own.
func (u *unpickler) row(callee Global) (name string, x *alike, own string) {
	b, place := u.b[u.at:], u.memo.next
	if len(b) < toName || b[0] != 'r' || u32(b[1:]) != uint32(place) || b[1+placeSize] != 'X' {
		return "", nil, ""
	}
	n := int(u32(b[toName-4:]))
	if b = b[toName:]; n < 0 || len(b)-fromName < n {
		return "", nil, ""
	}
	name, b = b[:n], b[n:]
	if b[0] != 'r' || u32(b[1:]) != uint32(place+1) || b[1+placeSize] != 'h' || !utf8.ValidString(name) {
		return "", nil, ""
	}
	if at := int(b[fromName-1]); at >= len(u.memo.early) || u.memo.early[at] != any(callee) || len(u.alikes.list) == 0 || len(u.memo.rest) > 0 {
		return "", nil, ""
	}
	x, own = u.alikes.find(b[fromName:], place+2, callee)
	return name, x, own
}
