package pickle

import "unicode/utf8"

// alike is a call that went the short way, by which others are recognised: nearly all
// tensors of a model are made by the same bytes as another one, but for a text of their
// own, and for the places in the memo, which count up.
type alike struct {
	callee Global
	call   string
	holes  []hole // in their order
	value  any
	next   int // the call that came after one like this, the last time
}

// hole is a part of a call in which others may differ: a place of 4 bytes, or the text.
type hole struct {
	at, size int
	own      bool
}

const placeSize = 4

// mostAlike is how many calls are kept: the layers of a model have about as many tensors.
const mostAlike = 16

// alikes are calls that were met. Their layers make models repeat a row of calls.
type alikes struct {
	list []alike
	last int // that was met

	missed int // how many more calls were not found than were, not counted below 0
}

// mostMissed is how many calls may be looked for in vain: from then on none is.
const mostMissed = 100

// call does the call that begins here if it is like an earlier one.
func (a *alikes) call(u *unpickler, callee Global) any {
	if len(a.list) == 0 || len(u.memo.rest) > 0 || a.missed > mostMissed {
		return nil
	}
	x, own := a.find(u.b[u.at:], u.memo.next, callee)
	if x == nil {
		a.missed++
		return nil
	}
	return a.do(x, own, u)
}

// find returns the call that b begins with, whose first value has a place, nil if it is like
// none, and its own text.
func (a *alikes) find(b string, place int, callee Global) (x *alike, own string) {
	n := a.list[a.last].next
	for range a.list {
		if n >= len(a.list) {
			n = 0
		}
		x := &a.list[n]
		if own, ok := x.matches(b, place); ok && x.callee == callee {
			a.met(n)
			a.missed = max(a.missed-1, 0)
			return x, own
		}
		n++
	}
	return nil, ""
}

// do does a call that was found.
func (a *alikes) do(x *alike, own string, u *unpickler) any {
	u.at += len(x.call)
	u.memo.skip(len(x.holes) - 1)
	return u.rules.Alike(x.value, own)
}

func (a *alikes) met(n int) { a.list[a.last].next, a.last = n, n }

// matches returns the own text of the call that b begins with, if that is such a call.
func (x *alike) matches(b string, place int) (own string, ok bool) {
	if len(b) < len(x.call) {
		return "", false
	}
	at := 0
	for _, h := range x.holes {
		if b[at:h.at] != x.call[at:h.at] {
			return "", false
		}
		at = h.at + h.size
		if h.own {
			own = b[h.at:at]
			continue
		}
		if u32(b[h.at:]) != uint32(place) {
			return "", false
		}
		place++
	}
	return own, b[at:len(x.call)] == x.call[at:] && utf8.ValidString(own)
}

// learn keeps a call that went the short way, if no more than one text is its own, and
// none of its values is kept in the memo.
func (a *alikes) learn(c *Cursor, callee Global, call string, value any) {
	if c.u.rules.Alike == nil || !c.alone || c.owns != 1 || a.missed > mostMissed {
		return
	}
	n := a.last + 1
	if len(a.list) < mostAlike {
		n = len(a.list)
		a.list = append(a.list, alike{})
	}
	n %= len(a.list)
	x := &a.list[n]
	*x = alike{callee, call, append(x.holes[:0], c.holes...), value, n}
	a.met(n)
}

// forget is for when a value in the memo is replaced, which calls may have fetched.
func (a *alikes) forget() { a.list, a.last = a.list[:0], 0 }
